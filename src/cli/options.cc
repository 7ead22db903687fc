// SPDX-License-Identifier: Apache-2.0
// See options.h.
#include "cli/options.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::cli {

namespace {

using base::quote;

struct Written {
  const OptionSpec* spec = nullptr;
  std::string name;  // as written, without "=value"
  bool has_value = false;
  std::string value;
};

// "-5" is a number where words are expected: none of our options is a digit.
bool is_option(const std::string& word, Rest rest) {
  const bool digit = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
  return word.size() > 1 && word.front() == '-' && !(digit && rest == Rest::kWords);
}

Written look_up(std::span<const OptionSpec> specs, const std::string& word) {
  Written written;
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    written.name = word.substr(0, equals);
    written.has_value = equals != std::string::npos;
    if (written.has_value) written.value = word.substr(equals + 1);
  } else {
    written.name = word.substr(0, 2);
    written.has_value = word.size() > 2;
    if (written.has_value) written.value = word.substr(2);
  }
  for (const OptionSpec& spec : specs)
    if (spec.name == written.name || (!spec.short_name.empty() && spec.short_name == written.name))
      written.spec = &spec;
  return written;
}

// The names in Slurm and other programs.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kOtherNames{
    {{"--cpus-per-task", "--cpus"},
     {"--dependency", "--after"},
     {"--error", "--err"},
     {"--gres", "--gpu"},
     {"--job-name", "--name"},
     {"--mem", "--ram"},
     {"--memory", "--ram"},
     {"--ntasks", "--procs"},
     {"--timeout", "--time"},
     {"--workdir", "--chdir"}}};

// "min=1,max=81".
bool assigns(const std::string& word) {
  return !word.empty() && word.front() != '-' && word.find('=') != std::string::npos;
}

Error unknown(std::span<const OptionSpec> specs, const std::string& name) {
  std::vector<std::string_view> names;
  for (const OptionSpec& spec : specs)
    if (spec.offered()) names.push_back(spec.name);
  std::string_view near = base::nearest(name, names);
  for (const auto& [theirs, ours] : kOtherNames)
    if (theirs == name && std::find(names.begin(), names.end(), ours) != names.end()) near = ours;
  return Error::invalid("there is no option " + quote(name))
      .with_hint(near.empty() ? "--help lists the options; -- ends them"
                              : "did you mean " + std::string(near) + "?");
}

// Checks one option against the table and the options before it.
Result<void> check(const Written& written, const Parsed& parsed) {
  const OptionSpec& spec = *written.spec;
  if (!spec.not_built.empty()) {
    return Error::unsupported(std::string(spec.name) + " is not implemented yet")
        .with_evidence(std::string(spec.not_built))
        .with_hint("leave it out");
  }
  if (!spec.other_verb.empty()) {
    const std::string verb(spec.other_verb);
    return Error::unsupported(std::string(spec.name) + " is an option of " + verb)
        .with_hint(verb + " " + std::string(spec.name) + " does it; or leave it out");
  }
  if (spec.value.empty() && written.has_value)
    return Error::invalid(std::string(spec.name) + " takes no value")
        .with_hint("write " + std::string(spec.name) + " alone");
  if (!spec.repeats && parsed.has(spec.name))
    return Error::invalid(std::string(spec.name) + " is given twice").with_hint("give it once");
  return {};
}

}  // namespace

const std::string* Parsed::find(std::string_view name) const {
  for (const auto& [option, value] : options)
    if (option == name) return &value;
  return nullptr;
}

std::vector<std::string> Parsed::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [option, value] : options)
    if (option == name) values.push_back(value);
  return values;
}

Result<Parsed> parse_options(std::span<const OptionSpec> specs,
                             const std::vector<std::string>& args, Rest rest) {
  Parsed parsed;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--" || (!is_option(args[i], rest) && rest != Rest::kWords)) {
      parsed.dashes = args[i] == "--";
      parsed.rest.insert(parsed.rest.end(),
                         args.begin() + static_cast<std::ptrdiff_t>(parsed.dashes ? i + 1 : i),
                         args.end());
      break;
    }
    if (!is_option(args[i], rest)) {
      parsed.rest.push_back(args[i]);
      continue;
    }
    Written written = look_up(specs, args[i]);
    if (written.spec == nullptr) return unknown(specs, written.name);
    if (Result<void> r = check(written, parsed); !r) return std::move(r).error();
    if (!written.spec->value.empty() && !written.has_value && !written.spec->value_optional) {
      if (i + 1 == args.size() || args[i + 1] == "--") {
        return Error::invalid(written.name + " needs a value")
            .with_hint("write " + written.name + " " + std::string(written.spec->value));
      }
      written.value = args[++i];
    } else if (written.spec->next_assigns && !written.has_value && i + 1 < args.size() &&
               assigns(args[i + 1])) {
      written.value = args[++i];
    }
    parsed.options.emplace_back(written.spec->name, std::move(written.value));
  }
  if (rest == Rest::kNothing && !parsed.rest.empty()) {
    return Error::invalid(quote(parsed.rest.front()) + " is not expected here")
        .with_hint("--help shows how it is used");
  }
  return parsed;
}

}  // namespace mete::cli
