// SPDX-License-Identifier: Apache-2.0
#include "sweep/yaml_outline.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <sstream>
#include <vector>

namespace mete::sweep {

namespace {

// Records what the tree does not tell: documents, anchors and aliases, and how much there is.
class Outline : public YAML::EventHandler {
 public:
  std::vector<YAML::Mark> documents;
  std::optional<YAML::Mark> link;  // the first anchor or alias
  std::size_t nodes = 0;

 private:
  using Style = YAML::EmitterStyle::value;
  void see(const YAML::Mark& mark, YAML::anchor_t anchor) {
    ++nodes;
    if (anchor != YAML::NullAnchor && !link) link = mark;
  }
  void OnDocumentStart(const YAML::Mark& mark) override { documents.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { see(mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { see(mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string&) override {
    see(mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       Style) override {
    see(mark, anchor);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  Style) override {
    see(mark, anchor);
  }
  void OnMapEnd() override {}
};

}  // namespace

std::size_t line_of(const YAML::Mark& mark) {
  return mark.is_null() ? 1 : static_cast<std::size_t>(mark.line) + 1;
}

// YAML::LoadAll of yaml-cpp 0.7 cannot be used: it never returns for a text such as ",a", of which
// it consumes nothing.
Result<void> check_outline(const std::string& text, const SpaceLines& lines) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Outline outline;
  while (outline.documents.size() < 2 && parser.HandleNextDocument(outline)) continue;
  if (outline.link)
    return lines.at(line_of(*outline.link), "anchors and aliases of YAML are not read here")
        .with_hint("write the value out; a text that begins with & or * needs quotes");
  if (outline.nodes > kMaxNodes)
    return lines.at(1, "the file has too many values")
        .with_evidence("more than " + std::to_string(kMaxNodes));
  if (outline.documents.size() < 2) return {};
  if (outline.documents[0].pos == outline.documents[1].pos)
    throw YAML::ParserException(outline.documents[1], "a value is expected");
  return lines.at(line_of(outline.documents[1]), "a second document begins")
      .with_hint("a file has one space");
}

}  // namespace mete::sweep
