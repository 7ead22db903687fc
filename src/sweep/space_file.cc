// SPDX-License-Identifier: Apache-2.0
// See space_file.h. check_outline() goes over the events of the text first: one document, no
// anchors or aliases, a bounded number of values. SpaceReader then reads the tree: parameters
// before all else, since expressions may use any name of the file. A scalar keeps its text; only a
// plain one can be a number or a bool. yaml-cpp throws; no exception leaves this file.
#include "sweep/space_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "sweep/space_parts.h"
#include "sweep/yaml_outline.h"

namespace mete::sweep {

namespace {

using core::sweep::Expression;
using core::sweep::Parameter;
using core::sweep::Range;
using core::sweep::Value;

using Names = std::vector<std::string_view>;
constexpr std::array<std::string_view, 8> kKeys{"params", "sampler", "trials",   "seed",
                                                "keep",   "metrics", "minimize", "maximize"};
constexpr std::array<std::string_view, 7> kParameterKeys{"values", "min",  "max", "log",
                                                         "int",    "step", "when"};
// Names that other programs use.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTheirs{
    {{"choices", "values"},
     {"condition", "when"},
     {"high", "max"},
     {"if", "when"},
     {"integer", "int"},
     {"low", "min"},
     {"method", "sampler"},
     {"n_trials", "trials"},
     {"parameters", "params"},
     {"space", "params"}}};

std::string words_of(const std::string& name) { return "parameter " + base::quote(name); }

std::size_t line_of(const YAML::Node& node) { return sweep::line_of(node.Mark()); }

class SpaceReader {
 public:
  explicit SpaceReader(const std::string& path) : lines_{path} {}

  Result<SpaceFile> read(const YAML::Node& root) {
    if (!root.IsMap())
      return at(root, "a space file is a map of keys and values")
          .with_hint("write params: and below it lr: [1e-3, 1e-4]");
    Result<std::vector<Entry>> entries = read_map(root, "the file");
    if (!entries) return std::move(entries).error();
    for (const Entry& entry : *entries)
      if (Result<void> known = check_key(entry, Names(kKeys.begin(), kKeys.end())); !known)
        return std::move(known).error();
    for (const Entry& entry : *entries)
      if (entry.name == "params")
        if (Result<void> read = read_params(entry); !read) return std::move(read).error();
    for (const Entry& entry : *entries)
      if (Result<void> read = read_key(entry); !read) return std::move(read).error();
    if (!lines_.of.empty())
      if (Result<void> checked = check_space(file_, lines_); !checked)
        return std::move(checked).error();
    return std::move(file_);
  }

 private:
  struct Entry {
    std::string name;
    YAML::Node key;
    YAML::Node value;
  };

  Error at(const YAML::Node& node, const std::string& message) const {
    return lines_.at(line_of(node), message);
  }

  // The entries of a map, each name once, each with a value.
  Result<std::vector<Entry>> read_map(const YAML::Node& map, const std::string& what) const {
    std::vector<Entry> entries;
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar())
        return at(map, what + " has a key that is no word").with_hint("write lr: [1e-3, 1e-4]");
      const std::string& name = entry.first.Scalar();
      if (!seen.insert(name).second)
        return at(entry.first, base::quote(name) + " is there twice").with_hint("say it once");
      if (entry.second.IsNull())
        return at(entry.first, base::quote(name) + " has no value")
            .with_hint("write one behind it, or leave it out; the text null needs quotes");
      entries.push_back({name, entry.first, entry.second});
    }
    return entries;
  }

  Result<void> check_key(const Entry& entry, const Names& names) const {
    if (std::find(names.begin(), names.end(), entry.name) != names.end()) return {};
    std::string_view near =
        entry.name.size() > 64 ? std::string_view() : base::nearest(entry.name, names);
    for (const auto& [theirs, ours] : kTheirs)
      if (entry.name == theirs && std::find(names.begin(), names.end(), ours) != names.end())
        near = ours;
    std::vector<std::string> all(names.begin(), names.end());
    return at(entry.key, "there is no key " + base::quote(entry.name))
        .with_hint(near.empty() ? "keys here are " + base::join(all, ", ")
                                : "did you mean " + std::string(near) + "?");
  }

  Result<void> read_params(const Entry& params) {
    lines_.params = line_of(params.key);
    if (!params.value.IsMap() || params.value.size() == 0)
      return at(params.key, "params is a map of parameters")
          .with_hint("write lr: [1e-3, 1e-4] below params:");
    if (params.value.size() > core::sweep::kMaxParameters)
      return at(params.key, "the space has too many parameters")
          .with_evidence(std::to_string(params.value.size()) + "; at most " +
                         std::to_string(core::sweep::kMaxParameters));
    Result<std::vector<Entry>> entries = read_map(params.value, "params");
    if (!entries) return std::move(entries).error();
    for (const Entry& entry : *entries) names_.push_back(entry.name);
    for (const Entry& entry : *entries) {
      Result<Parameter> parameter = read_parameter(entry);
      if (!parameter) return std::move(parameter).error();
      file_.params.push_back(*std::move(parameter));
      lines_.of.push_back(line_of(entry.key));
    }
    return {};
  }

  Result<Parameter> read_parameter(const Entry& entry) const {
    if (entry.value.IsMap()) return read_spec(entry);
    Result<std::vector<Value>> values = read_values(entry.name, entry.value);
    if (!values) return std::move(values).error();
    return Parameter{entry.name, *std::move(values)};
  }

  // A list of scalars, or one scalar.
  Result<std::vector<Value>> read_values(const std::string& name, const YAML::Node& node) const {
    std::vector<Value> values;
    if (node.IsScalar()) {
      Result<Value> value = read_value(name, node);
      if (!value) return std::move(value).error();
      values.push_back(*std::move(value));
      return values;
    }
    if (!node.IsSequence())
      return at(node, words_of(name) + ": values is a list").with_hint("write values: [1, 2]");
    for (const YAML::Node& part : node) {
      if (part.IsNull())
        return at(node, words_of(name) + " has an empty value")
            .with_hint("a text that is empty, or is null, needs quotes");
      if (!part.IsScalar())
        return at(part, words_of(name) + ": a value is a " +
                            std::string(part.IsMap() ? "map" : "list") + " itself")
            .with_hint("values are numbers, texts, true and false; put quotes around what is one");
      Result<Value> value = read_value(name, part);
      if (!value) return std::move(value).error();
      values.push_back(*std::move(value));
    }
    return values;
  }

  Result<Value> read_value(const std::string& name, const YAML::Node& node) const {
    constexpr std::string_view kTags = "tag:yaml.org,2002:";
    const std::string& tag = node.Tag();
    const std::string& text = node.Scalar();
    if (tag == "!" || tag == std::string(kTags) + "str") return core::sweep::of_text(text);
    if (!tag.empty() && tag != "?")
      return at(node, words_of(name) + ": " + base::quote(tag) + " is not understood")
          .with_hint("leave the tag out; put quotes around a text");
    if (text == "True" || text == "TRUE") return core::sweep::of_bool(true);
    if (text == "False" || text == "FALSE") return core::sweep::of_bool(false);
    return core::sweep::guess(text);
  }

  Result<Parameter> read_spec(const Entry& parameter) const {
    const std::string what = words_of(parameter.name);
    Result<std::vector<Entry>> entries = read_map(parameter.value, what);
    if (!entries) return std::move(entries).error();
    std::map<std::string, const Entry*> found;
    for (const Entry& entry : *entries) {
      const Names names(kParameterKeys.begin(), kParameterKeys.end());
      if (Result<void> known = check_key(entry, names); !known) return std::move(known).error();
      found[entry.name] = &entry;
    }
    Parameter result{parameter.name, {}};
    if (found.contains("when")) {
      Result<Expression> when = read_expression(*found["when"], what + ": when");
      if (!when) return std::move(when).error();
      result.when = *std::move(when);
    }
    if (found.contains("values")) {
      for (const std::string_view other : {"min", "max", "log", "int", "step"})
        if (const auto extra = found.find(std::string(other)); extra != found.end())
          return at(extra->second->key, what + " has values and " + std::string(other))
              .with_hint("write values, or min and max");
      Result<std::vector<Value>> values = read_values(parameter.name, found["values"]->value);
      if (!values) return std::move(values).error();
      result.domain = *std::move(values);
      return result;
    }
    for (const char* const end : {"min", "max"})
      if (!found.contains(end))
        return at(parameter.key, what + " has no " + end)
            .with_hint("write {min: 1e-5, max: 1e-1}, or {values: [1, 2]}");
    Result<Range> range = read_range(what, found);
    if (!range) return std::move(range).error();
    result.domain = *range;
    return result;
  }

  Result<Range> read_range(const std::string& what,
                           const std::map<std::string, const Entry*>& found) const {
    Range range;
    for (const auto& [name, entry] : found) {
      if (name == "min" || name == "max" || name == "step") {
        const Result<double> number = read_number(what, *entry);
        if (!number) return number.error();
        if (name == "step")
          range.step = *number;
        else
          (name == "min" ? range.min : range.max) = *number;
      } else if (name == "log" || name == "int") {
        const Result<bool> flag = read_flag(what, *entry);
        if (!flag) return flag.error();
        (name == "log" ? range.log : range.integer) = *flag;
      }
    }
    return range;
  }

  Result<double> read_number(const std::string& what, const Entry& entry) const {
    if (entry.value.IsScalar()) {
      const Result<Value> value = read_value("", entry.value);
      if (value && (value->kind == Value::Kind::kInteger || value->kind == Value::Kind::kReal))
        return value->number;
    }
    return at(entry.value, what + ": " + entry.name + " is a number")
        .with_hint("write " + entry.name + ": 0.1, without quotes");
  }

  Result<bool> read_flag(const std::string& what, const Entry& entry) const {
    if (entry.value.IsScalar()) {
      const Result<Value> value = read_value("", entry.value);
      if (value && value->kind == Value::Kind::kBool) return value->number != 0;
    }
    return at(entry.value, what + ": " + entry.name + " is true or false")
        .with_hint("write " + entry.name + ": true");
  }

  Result<std::string> read_word(const Entry& entry) const {
    if (!entry.value.IsScalar() || entry.value.Scalar().empty())
      return at(entry.value, entry.name + " is one word");
    return entry.value.Scalar();
  }

  Result<Expression> read_expression(const Entry& entry, const std::string& what) const {
    if (!entry.value.IsScalar())
      return at(entry.value, what + " is an expression")
          .with_hint("put quotes around it: " + entry.name + ": 'bs <= 64'");
    Result<Expression> expression = Expression::parse(entry.value.Scalar(), names_);
    if (!expression)
      return std::move(expression).error().within(lines_.place(line_of(entry.value)) + ": " + what);
    return expression;
  }

  Result<void> read_key(const Entry& entry) {
    if (entry.name == "params") return {};
    if (entry.name == "metrics") return read_metrics(entry);
    if (entry.name == "keep") {
      Result<Expression> keep = read_expression(entry, "keep");
      if (!keep) return std::move(keep).error();
      file_.keep = *std::move(keep);
      return {};
    }
    Result<std::string> word = read_word(entry);
    if (!word) return std::move(word).error();
    if (entry.name == "sampler") return read_sampler(entry, *word);
    if (entry.name == "minimize" || entry.name == "maximize") {
      if (file_.goal)
        return at(entry.key, "minimize and maximize exclude each other").with_hint("say one");
      if (Result<core::sweep::MetricRule> fits = make_metric(*word, "last"); !fits)
        return std::move(fits).error().within(lines_.place(line_of(entry.value)));
      file_.goal = core::sweep::Goal{*std::move(word), entry.name == "maximize"};
      return {};
    }
    const Result<std::uint64_t> number = base::parse_uint(*word);
    if (!number)
      return at(entry.value, entry.name + ": " + number.error().message)
          .with_hint("write a whole number: " + entry.name + ": 100");
    (entry.name == "trials" ? file_.trials : file_.seed) = *number;
    return {};
  }

  Result<void> read_sampler(const Entry& entry, const std::string& word) {
    file_.sampler = core::sweep::parse_method(word);
    if (file_.sampler) return {};
    const auto& methods = core::sweep::kMethods;
    const std::string_view near =
        word.size() > 64 ? "" : base::nearest(word, Names(methods.begin(), methods.end()));
    return at(entry.value, "there is no sampler " + base::quote(word))
        .with_hint(near.empty()
                       ? "samplers are " + base::join({methods.begin(), methods.end()}, ", ")
                       : "did you mean " + std::string(near) + "?");
  }

  Result<void> read_metrics(const Entry& metrics) {
    if (!metrics.value.IsMap())
      return at(metrics.value, "metrics is a map")
          .with_hint("write metrics: {loss: 'loss=(\\S+)', acc: last}");
    Result<std::vector<Entry>> entries = read_map(metrics.value, "metrics");
    if (!entries) return std::move(entries).error();
    if (entries->size() > core::sweep::kMaxMetrics)
      return at(metrics.key, "there are too many metrics")
          .with_evidence(std::to_string(entries->size()) + "; at most " +
                         std::to_string(core::sweep::kMaxMetrics));
    for (const Entry& entry : *entries) {
      if (!entry.value.IsScalar())
        return at(entry.value, "metric " + base::quote(entry.name) + " has one pattern")
            .with_hint("put quotes around it");
      Result<core::sweep::MetricRule> rule = make_metric(entry.name, entry.value.Scalar());
      if (!rule) return std::move(rule).error().within(lines_.place(line_of(entry.value)));
      file_.metrics.push_back(*std::move(rule));
    }
    return {};
  }

  SpaceLines lines_;
  std::vector<std::string> names_;  // of all parameters
  SpaceFile file_;
};

}  // namespace

Result<SpaceFile> read_space_file(std::string_view text, const std::string& path) {
  const SpaceLines lines{path};
  if (text.size() > kMaxSpaceFile)
    return lines.at(1, "the file is too long")
        .with_evidence(std::to_string(text.size()) + " bytes; at most " +
                       std::to_string(kMaxSpaceFile));
  constexpr const char* kHint =
      "keys and values stand as lr: [1e-3, 1e-4]; tabs do not indent; an expression with commas or "
      "brackets needs quotes";
  try {
    const std::string owned(text);
    if (Result<void> checked = check_outline(owned, lines); !checked)
      return std::move(checked).error();
    const YAML::Node root = YAML::Load(owned);
    if (!root.IsDefined() || root.IsNull())
      return lines.at(1, "the file says nothing")
          .with_hint("write params: and below it lr: [1e-3, 1e-4]");
    return SpaceReader(path).read(root);
  } catch (const YAML::Exception& wrong) {
    return lines.at(line_of(wrong.mark), "this is no YAML")
        .with_evidence(wrong.msg)
        .with_hint(kHint);
  } catch (const std::exception& wrong) {
    return lines.at(1, "this is no YAML").with_evidence(wrong.what()).with_hint(kHint);
  }
}

}  // namespace mete::sweep
