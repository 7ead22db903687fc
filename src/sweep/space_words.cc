// SPDX-License-Identifier: Apache-2.0
// --grid and --metric, and what the readers of space files share. A word of --grid that begins with
// a quote ends at the same quote and is a text; every other word ends at a comma, loses the blanks
// around it, and is a number, a bool or a text by its look. check_space() makes a space of each
// parameter alone first, so that an error can name the line of the parameter; conditions are left
// out there, since they name other parameters.
#include <algorithm>
#include <utility>

#include "base/mark.h"
#include "base/text.h"
#include "core/sweep/space.h"
#include "sweep/space_file.h"
#include "sweep/space_parts.h"

namespace mete::sweep {

namespace {

using core::sweep::MetricRule;
using core::sweep::Parameter;
using core::sweep::Value;

constexpr std::string_view kBlanks = " \t";

// The words of --grid after the `=`.
class GridWords {
 public:
  GridWords(std::string_view option, std::size_t begin) : option_(option), at_(begin) {}

  Result<std::vector<Value>> read() {
    std::vector<Value> values;
    for (;;) {
      skip_blanks();
      Result<Value> value = is_quote() ? quoted() : plain();
      if (!value) return std::move(value).error();
      values.push_back(*std::move(value));
      if (at_ >= option_.size()) return values;
      ++at_;  // the comma
    }
  }

 private:
  Error wrong(const std::string& what, std::size_t at) const {
    return Error::invalid("--grid: " + what).with_evidence(base::marked(option_, at));
  }
  void skip_blanks() { at_ = std::min(option_.find_first_not_of(kBlanks, at_), option_.size()); }
  bool is_quote() const {
    return at_ < option_.size() && (option_[at_] == '"' || option_[at_] == '\'');
  }

  Result<Value> quoted() {
    const std::size_t began = at_;
    const std::size_t end = option_.find(option_[at_], at_ + 1);
    if (end == std::string_view::npos)
      return wrong("this quote is not closed", began)
          .with_hint("a quote that belongs to the value needs the other quotes around it");
    at_ = end + 1;
    skip_blanks();
    if (at_ < option_.size() && option_[at_] != ',')
      return wrong("a comma or the end belongs behind the quotes", at_);
    return core::sweep::of_text(std::string(option_.substr(began + 1, end - began - 1)));
  }

  Result<Value> plain() {
    const std::size_t end = std::min(option_.find(',', at_), option_.size());
    const std::string_view word = base::trim(option_.substr(at_, end - at_));
    if (word.empty())
      return wrong("a value is missing", at_).with_hint("an empty text is written as \"\"");
    at_ = end;
    return core::sweep::guess(word);
  }

  std::string_view option_;
  std::size_t at_;
};

}  // namespace

std::string SpaceLines::place(std::size_t line) const { return path + ":" + std::to_string(line); }

Error SpaceLines::at(std::size_t line, std::string message) const {
  return Error::invalid(place(line) + ": " + std::move(message));
}

Result<void> check_space(const SpaceFile& file, const SpaceLines& lines) {
  for (std::size_t i = 0; i < file.params.size(); ++i) {
    const Parameter& parameter = file.params[i];
    const Result<core::sweep::Space> alone =
        core::sweep::Space::make({{parameter.name, parameter.domain}});
    if (!alone) return Error(alone.error()).within(lines.place(lines.of[i]));
  }
  const Result<core::sweep::Space> all = core::sweep::Space::make(file.params, file.keep);
  if (!all) return Error(all.error()).within(lines.place(lines.params));
  return {};
}

Result<MetricRule> make_metric(std::string_view name, std::string_view pattern) {
  const auto is_bad = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7f || c == '=' || c == ',';
  };
  if (name.empty()) return Error::invalid("a metric has no name").with_hint("as in loss=last");
  if (name.size() > core::sweep::kMaxMetricName)
    return Error::invalid("the name of a metric is too long")
        .with_evidence(base::quote(name) + " has more than " +
                       std::to_string(core::sweep::kMaxMetricName) + " bytes");
  if (std::any_of(name.begin(), name.end(), is_bad))
    return Error::invalid(base::quote(name) + " cannot be the name of a metric")
        .with_hint("it has no blanks, commas or =");
  const std::string words = "metric " + base::quote(name);
  if (pattern.empty())
    return Error::invalid(words + " has no pattern")
        .with_hint("a regular expression with one group, such as loss: (\\S+), or last");
  if (pattern.size() > core::sweep::kMaxPattern)
    return Error::invalid(words + " has a pattern that is too long")
        .with_evidence(std::to_string(pattern.size()) + " bytes; at most " +
                       std::to_string(core::sweep::kMaxPattern));
  if (pattern.find('\0') != std::string_view::npos)
    return Error::invalid(words + " has a pattern with a NUL byte");
  return MetricRule{std::string(name), pattern == "last" ? "" : std::string(pattern)};
}

Result<Parameter> parse_grid(std::string_view option) {
  const std::size_t equal = option.find('=');
  if (equal == std::string_view::npos)
    return Error::invalid("--grid " + base::quote(option) + " has no values")
        .with_hint("write --grid lr=1e-3,1e-4");
  Parameter parameter{std::string(base::trim(option.substr(0, equal))), {}};
  Result<std::vector<Value>> values = GridWords(option, equal + 1).read();
  if (!values) return std::move(values).error();
  parameter.domain = *std::move(values);
  const Result<core::sweep::Space> alone = core::sweep::Space::make({parameter});
  if (!alone) return Error(alone.error()).within("--grid");
  return parameter;
}

Result<MetricRule> parse_metric(std::string_view option) {
  const std::size_t equal = option.find('=');
  if (equal == std::string_view::npos)
    return Error::invalid("--metric " + base::quote(option) + " has no pattern")
        .with_hint("write --metric 'loss=loss: (\\S+)' or --metric loss=last");
  Result<MetricRule> rule = make_metric(option.substr(0, equal), option.substr(equal + 1));
  if (!rule) return std::move(rule).error().within("--metric");
  return rule;
}

}  // namespace mete::sweep
