// SPDX-License-Identifier: Apache-2.0
// See job_file.h. Reader goes over the YAML tree: each key is looked up in the table of `mete
// submit`'s options, and its value becomes a word with its place; keys above jobs: are the defaults
// of every job below. order_of_jobs() sorts by after:. yaml-cpp throws; no exception leaves this
// file.
#include "cli/job_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "base/text.h"
#include "cli/job_words.h"

namespace mete::cli {

namespace {

// A key of a file and the option that it stands for.
struct Key {
  std::string name;
  const OptionSpec* option = nullptr;
  enum class Kind { kText, kFlag, kList, kMap } kind = Kind::kText;
};

Key::Kind kind_of(const OptionSpec& option) {
  if (option.value.empty()) return Key::Kind::kFlag;
  if (option.name == "--env" || option.name == "--label") return Key::Kind::kMap;
  constexpr std::array<std::string_view, 5> kLists{"--after", "--array", "--devices", "--notify",
                                                   "--notify-on"};
  return std::find(kLists.begin(), kLists.end(), option.name) != kLists.end() ? Key::Kind::kList
                                                                              : Key::Kind::kText;
}

std::vector<Key> all_keys() {
  std::vector<Key> keys;
  for (const OptionSpec& option : submit_options()) {
    if (is_of_command_line(option.name) || !option.other_verb.empty()) continue;
    std::string name(option.name.substr(2));
    if (name == "label") name = "labels";
    keys.push_back({std::move(name), &option, kind_of(option)});
  }
  return keys;
}

// The key that was probably meant: the name in other programs, or the nearest.
std::string_view meant_key(std::string_view key, const std::vector<std::string_view>& names) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTheirs{
      {{"cards", "gpu"},
       {"cmd", "command"},
       {"cwd", "chdir"},
       {"depends-on", "after"},
       {"environment", "env"},
       {"mem", "ram"},
       {"memory", "ram"},
       {"output", "log"},
       {"workdir", "chdir"},
       {"working-dir", "chdir"}}};
  for (const auto& [theirs, ours] : kTheirs)
    if (key == theirs) return ours;
  return base::nearest(key, names);
}

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)), keys_(all_keys()) {}
  // Of service files.
  Reader(std::string path, std::span<const std::string_view> more,
         std::span<const std::string_view> of_file)
      : path_(std::move(path)), keys_(all_keys()), more_(more), of_file_(of_file) {}

  // `values`: of the keys of the whole file.
  Result<std::vector<FileJob>> read_services(
      const YAML::Node& root, std::vector<std::pair<std::string, FileValue>>& values) {
    if (!root.IsMap())
      return at(root, "a service file is a map of keys and values").with_hint(kServicesHint);
    FileJob shared;
    YAML::Node list;
    if (Result<void> r = read_map(root, shared, &list, "services"); !r) return std::move(r).error();
    if (!list.IsDefined() || list.IsNull())
      return at(root, "there is no services:").with_hint(kServicesHint);
    if (!shared.name.empty())
      return at(root, "beside services: there is a name for all of them")
          .with_hint("give each service its own name:");
    const auto is_of_file = [&](const auto& entry) {
      return std::find(of_file_.begin(), of_file_.end(), entry.first) != of_file_.end();
    };
    const auto first =
        std::stable_partition(shared.more.begin(), shared.more.end(), std::not_fn(is_of_file));
    values.assign(first, shared.more.end());
    shared.more.erase(first, shared.more.end());
    of_file_ = {};
    return read_list(list, shared, "services");
  }

  Result<std::vector<FileJob>> read(const YAML::Node& root) {
    if (!root.IsMap())
      return at(root, "a job file is a map of keys and values")
          .with_hint("write gpu: 8G and command: [python, train.py], each in a line of its own");
    FileJob shared;
    YAML::Node list;
    if (Result<void> r = read_map(root, shared, &list, "jobs"); !r) return std::move(r).error();
    if (!list.IsDefined() || list.IsNull()) return std::vector{std::move(shared)};
    if (!shared.name.empty())
      return at(root, "beside jobs: there is a name for all of them")
          .with_hint("give each job its own name:");
    return read_list(list, shared, "jobs");
  }

 private:
  static constexpr std::size_t kMaxValues = 100'000;
  static constexpr const char* kServicesHint =
      "write services: and below it \"- name: chat\", command: and gpu:";

  std::string place(const YAML::Node& node) const {
    return path_ + ":" + std::to_string(node.Mark().line + 1) + ":" +
           std::to_string(node.Mark().column + 1);
  }
  Error at(const YAML::Node& node, const std::string& message) const {
    return Error::invalid(place(node) + ": " + message);
  }

  // `what`: "jobs" or "services".
  Result<std::vector<FileJob>> read_list(const YAML::Node& list, const FileJob& shared,
                                         const std::string& what) {
    if (!list.IsSequence() || list.size() == 0)
      return at(list, what + ": is a list of " + what).with_hint("write each as \"- name: first\"");
    if (list.size() > kMaxFileJobs)
      return at(list, "there are " + std::to_string(list.size()) + " " + what)
          .with_hint("a file has at most " + std::to_string(kMaxFileJobs) +
                     (what == "jobs" ? "; array: 0-9999 makes many of one" : ""));
    std::vector<FileJob> jobs;
    for (const YAML::Node& node : list) {
      FileJob job;
      if (!node.IsMap())
        return at(node, "a " + what.substr(0, what.size() - 1) + " is a map of keys and values")
            .with_hint("write - name: first");
      if (Result<void> r = read_map(node, job, nullptr, what); !r) return std::move(r).error();
      job.words = merge(shared.words, std::move(job.words));
      if (!job.program.is_said()) job.program = shared.program;
      for (const auto& [key, value] : shared.more)
        if (std::none_of(job.more.begin(), job.more.end(),
                         [&name = key](const auto& own) { return own.first == name; }))
          job.more.emplace_back(key, value);
      jobs.push_back(std::move(job));
    }
    return jobs;
  }

  // `list`: receives jobs: or services: (`what`), where it is allowed.
  Result<void> read_map(const YAML::Node& map, FileJob& job, YAML::Node* list,
                        const std::string& what) {
    job.where = path_ + ":" + std::to_string(map.Mark().line + 1);
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar())
        return at(entry.first, "a key is a word").with_hint("write gpu: 8G");
      // Hyphens and underscores are equal in keys.
      std::string key = entry.first.Scalar();
      std::replace(key.begin(), key.end(), '_', '-');
      if (!seen.insert(key).second)
        return at(entry.first, base::quote(key) + " is there twice").with_hint("say it once");
      if (key == what && list != nullptr) {
        *list = entry.second;
      } else if (is_more(key)) {
        Result<FileValue> value = read_value(key, entry.first, entry.second);
        if (!value) return std::move(value).error();
        job.more.emplace_back(key, *std::move(value));
      } else if (key == "command" || key == "script") {
        if (Result<void> r = read_program(key, entry.first, entry.second, job.program); !r)
          return r;
      } else if (Result<void> r = read_option(key, entry.first, entry.second, job); !r) {
        return r;
      }
    }
    return {};
  }

  Error unknown(const std::string& key, const YAML::Node& node) const {
    std::vector<std::string_view> names{"command", "script", more_.empty() ? "jobs" : "services"};
    names.insert(names.end(), more_.begin(), more_.end());
    names.insert(names.end(), of_file_.begin(), of_file_.end());
    for (const Key& known : keys_)
      if (known.option->offered()) names.push_back(known.name);
    const std::string_view near = meant_key(key, names);
    std::string hint = near.empty() ? "keys are the options of mete submit, without their dashes"
                                    : "did you mean " + std::string(near) + "?";
    if (!more_.empty() && near.empty())
      hint = "keys are those of a service, and the options of mete submit without their dashes";
    if (key == "<<")
      hint = more_.empty() ? "what all jobs share stands beside jobs:"
                           : "what all services share stands beside services:";
    return at(node, "there is no key " + base::quote(key)).with_hint(std::move(hint));
  }

  bool is_more(const std::string& key) const {
    return std::find(more_.begin(), more_.end(), key) != more_.end() ||
           std::find(of_file_.begin(), of_file_.end(), key) != of_file_.end();
  }

  // Lists and maps of words, at most three deep.
  Result<FileValue> read_value(const std::string& name, const YAML::Node& key,
                               const YAML::Node& node, int deep = 0) {
    // An alias may stand for many values.
    if (++values_ > kMaxValues)
      return at(node, "there are more than " + std::to_string(kMaxValues) + " values")
          .with_hint("shorten the lists");
    FileValue value;
    value.where = place(node.IsNull() ? key : node);
    if (node.IsNull())
      return at(key, name + " has no value").with_hint("write one behind it, or leave it out");
    if (node.IsScalar()) {
      value.text = node.Scalar();
      return value;
    }
    if (deep == 3) return at(node, name + " is too deep").with_hint("write a word here");
    value.kind = node.IsMap() ? FileValue::Kind::kMap : FileValue::Kind::kList;
    for (std::size_t i = 0; node.IsSequence() && i < node.size(); ++i) {
      Result<FileValue> part = read_value(name, node, node[i], deep + 1);
      if (!part) return part;
      value.parts.push_back(*std::move(part));
    }
    if (!node.IsMap()) return value;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar())
        return at(entry.first, "a key is a word").with_hint("write one before the colon");
      std::string inner = entry.first.Scalar();
      std::replace(inner.begin(), inner.end(), '_', '-');
      if (std::find(value.keys.begin(), value.keys.end(), inner) != value.keys.end())
        return at(entry.first, base::quote(inner) + " is there twice").with_hint("say it once");
      Result<FileValue> part = read_value(inner, entry.first, entry.second, deep + 1);
      if (!part) return part;
      value.keys.push_back(std::move(inner));
      value.parts.push_back(*std::move(part));
    }
    return value;
  }

  Result<void> read_option(const std::string& name, const YAML::Node& key, const YAML::Node& value,
                           FileJob& job) {
    const auto known = std::find_if(keys_.begin(), keys_.end(),
                                    [&](const Key& each) { return each.name == name; });
    if (known == keys_.end()) return unknown(name, key);
    if (!known->option->offered())
      return Error::unsupported(place(key) + ": " + name + " is not implemented yet")
          .with_evidence(std::string(known->option->not_built))
          .with_hint("leave it out");
    if (value.IsNull())
      return at(key, name + " has no value").with_hint("write one behind it, or leave it out");
    switch (known->kind) {
      case Key::Kind::kFlag:
        return read_flag(*known, value, job);
      case Key::Kind::kMap:
        return read_pairs(*known, value, job);
      case Key::Kind::kList:
        if (value.IsSequence()) return read_joined(*known, value, job);
        break;
      case Key::Kind::kText:
        break;
    }
    if (!value.IsScalar())
      return at(value, name + " is one word").with_hint("write " + name + ": " + example(*known));
    if (name == "name") job.name = value.Scalar();
    job.words.push_back({known->option->name, value.Scalar(), place(value)});
    return {};
  }

  static std::string example(const Key& key) {
    return base::to_lower(key.option->value.substr(0, key.option->value.find('[')));
  }

  Result<void> read_flag(const Key& key, const YAML::Node& value, FileJob& job) {
    const std::string text = value.IsScalar() ? base::to_lower(value.Scalar()) : "";
    const bool yes = text == "true" || text == "yes" || text == "on";
    if (!yes && text != "false" && text != "no" && text != "off")
      return at(value, key.name + " is true or false").with_hint("write " + key.name + ": true");
    // `false` is more than the absence of the flag, which leaves the choice to the configuration.
    if (!yes && key.option->name == kPreemptibleOption.name)
      job.words.push_back({kNotPreemptibleOption.name, "", place(value)});
    else
      job.words.push_back({key.option->name, yes ? "" : std::string(kNo), place(value)});
    return {};
  }

  Result<void> read_pairs(const Key& key, const YAML::Node& value, FileJob& job) {
    if (!value.IsMap())
      return at(value, key.name + " is a map").with_hint("write " + key.name + ": {NAME: value}");
    std::set<std::string> seen;
    for (const auto& entry : value) {
      if (!entry.first.IsScalar() || !entry.second.IsScalar())
        return at(entry.first, key.name + " has a name and one word for each")
            .with_hint("write " + key.name + ": {NAME: value}; \"\" is an empty one");
      if (!seen.insert(entry.first.Scalar()).second)
        return at(entry.first, base::quote(entry.first.Scalar()) + " is there twice")
            .with_hint("say it once");
      if (entry.first.Scalar().find('=') != std::string::npos)
        return at(entry.first, base::quote(entry.first.Scalar()) + " is no name: it has a =")
            .with_hint("write " + key.name + ": {NAME: value}");
      job.words.push_back({key.option->name, entry.first.Scalar() + "=" + entry.second.Scalar(),
                           place(entry.first)});
    }
    return {};
  }

  Result<void> read_joined(const Key& key, const YAML::Node& value, FileJob& job) {
    Result<std::vector<std::string>> texts = read_texts(key.name, value);
    if (!texts) return std::move(texts).error();
    if (!key.option->repeats) {
      job.words.push_back({key.option->name, base::join(*texts, ","), place(value)});
      return {};
    }
    for (std::size_t i = 0; i < texts->size(); ++i)
      job.words.push_back({key.option->name, (*texts)[i], place(value[i])});
    return {};
  }

  Result<std::vector<std::string>> read_texts(const std::string& name, const YAML::Node& value) {
    std::vector<std::string> texts;
    for (const YAML::Node& part : value) {
      if (!part.IsScalar())
        return at(part, name + " is a list of words").with_hint("put quotes around what is one");
      texts.push_back(part.Scalar());
    }
    if (texts.empty()) return at(value, name + " is an empty list").with_hint("leave it out");
    return texts;
  }

  Result<void> read_program(const std::string& name, const YAML::Node& key, const YAML::Node& value,
                            FileProgram& program) {
    if (program.is_said())
      return at(key, "a job has a command or a script, not both").with_hint("leave one out");
    program.where = place(value);
    if (value.IsSequence()) {
      Result<std::vector<std::string>> texts = read_texts(name, value);
      if (!texts) return std::move(texts).error();
      (name == "command" ? program.command : program.script) = *std::move(texts);
      return {};
    }
    if (!value.IsScalar() || base::trim(value.Scalar()).empty())
      return at(value, name + " is a list of words or one text")
          .with_hint(name == "command" ? "write command: [python, train.py]"
                                       : "write script: train.sh");
    if (name == "command")
      program.shell = value.Scalar();
    else if (value.Scalar().find('\n') != std::string::npos || value.Scalar().starts_with("#!"))
      program.text = value.Scalar();
    else
      program.script = {value.Scalar()};
    return {};
  }

  std::string path_;
  std::vector<Key> keys_;
  std::span<const std::string_view> more_;     // keys of services
  std::span<const std::string_view> of_file_;  // and of their file
  std::size_t values_ = 0;                     // of such keys
};

// Records where documents begin.
class Beginnings : public YAML::EventHandler {
 public:
  std::vector<YAML::Mark> documents;

 private:
  using Style = YAML::EmitterStyle::value;
  void OnDocumentStart(const YAML::Mark& mark) override { documents.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnMapEnd() override {}
};

// Whether there is exactly one document. YAML::LoadAll of yaml-cpp 0.7 cannot be used: it never
// returns for a text such as ",a", of which it consumes nothing.
Result<void> check_one_document(const std::string& text, const std::string& path) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Beginnings heard;
  while (heard.documents.size() < 2 && parser.HandleNextDocument(heard)) continue;
  if (heard.documents.size() < 2) return {};
  if (heard.documents[0].pos == heard.documents[1].pos)
    throw YAML::ParserException(heard.documents[1], "a value is expected");
  return Error::invalid(path + ":" + std::to_string(heard.documents[1].line + 1) +
                        ": a second document begins")
      .with_hint("several jobs of one file stand in a list under jobs:");
}

// `read`: of the root of the only document.
template <class Read>
Result<std::vector<FileJob>> parse_yaml(std::string_view text, const std::string& path,
                                        const char* empty_hint, Read&& read) {
  try {
    const std::string owned(text);
    if (Result<void> r = check_one_document(owned, path); !r) return std::move(r).error();
    const YAML::Node root = YAML::Load(owned);
    if (!root.IsDefined() || root.IsNull())
      return Error::invalid(path + " says nothing").with_hint(empty_hint);
    return read(root);
  } catch (const YAML::Exception& wrong) {
    std::string where = path;
    if (!wrong.mark.is_null())
      where +=
          ":" + std::to_string(wrong.mark.line + 1) + ":" + std::to_string(wrong.mark.column + 1);
    return Error::invalid(where + ": this is no YAML")
        .with_evidence(wrong.msg)
        .with_hint("keys and values stand as gpu: 8G; tabs do not indent");
  } catch (const std::exception& wrong) {
    return Error::invalid(path + ": this is no YAML").with_evidence(wrong.what());
  }
}

}  // namespace

Result<std::vector<FileJob>> parse_job_file(std::string_view text, const std::string& path) {
  return parse_yaml(text, path,
                    "write gpu: 8G and command: [python, train.py], each in a line of its own",
                    [&](const YAML::Node& root) { return Reader(path).read(root); });
}

Result<std::vector<FileJob>> parse_service_entries(
    std::string_view text, const std::string& path, std::span<const std::string_view> keys,
    std::span<const std::string_view> file_keys,
    std::vector<std::pair<std::string, FileValue>>& of_file) {
  return parse_yaml(text, path, "write services: and a list of them below it",
                    [&](const YAML::Node& root) {
                      return Reader(path, keys, file_keys).read_services(root, of_file);
                    });
}

Result<std::vector<std::size_t>> order_of_jobs(const std::vector<FileJob>& jobs,
                                               const std::vector<std::vector<std::string>>& after) {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < jobs.size(); ++i) by_name.emplace(jobs[i].name, i);
  std::vector<std::size_t> order;
  std::vector<bool> placed(jobs.size(), false);
  const auto is_next = [&](std::size_t job) {
    return !placed[job] && std::all_of(after[job].begin(), after[job].end(),
                                       [&](const auto& name) { return placed[by_name.at(name)]; });
  };
  for (std::size_t i = 0; i < jobs.size();) {
    if (!is_next(i)) {
      ++i;
      continue;
    }
    placed[i] = true;
    order.push_back(i);
    i = 0;  // an earlier job may have waited for this one
  }
  if (order.size() == jobs.size()) return order;
  std::vector<std::string> left;
  std::string where;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (placed[i]) continue;
    if (left.empty()) where = jobs[i].where;
    if (left.size() < 5) left.push_back(jobs[i].name.empty() ? "(no name)" : jobs[i].name);
  }
  return Error::invalid(where + ": jobs wait for each other in a circle")
      .with_evidence("none of these could start: " + base::join(left, ", "))
      .with_hint("leave one after: out");
}

}  // namespace mete::cli
