// SPDX-License-Identifier: Apache-2.0
// `mete config show|check`: prints the values in effect and where they come from, or the errors of
// a file. Never contacts a daemon, never changes anything.
#include "config/config.h"

#include <sys/stat.h>

#include <array>
#include <cstdlib>

#include "base/process.h"
#include "cli/json.h"
#include "cli/subword.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

using config::Config;
using config::ConfigPlaces;
using config::Shown;

constexpr std::array kConfigOptions{
    OptionSpec{"--origin", "", "with show: print where each value comes from"},
    kOutputOption,
};

// Variables that say where things are; they have no key in the file.
constexpr std::array kVariables{"METE_CONFIG", "METE_SOCKET",  "METE_STATE_DIR",
                                "METE_SIM",    "METE_SIM_DIR", "METE_CLAIMS_DIR"};

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

std::string show_text(const Config& values, const ConfigPlaces& places, bool origins) {
  std::string text = "version = " + std::to_string(config::kFileVersion) + "\n";
  std::string_view section;
  for (const Shown& shown : config::show(values)) {
    if (shown.section != section) {
      text.append("\n[").append(shown.section).append("]\n");
      section = shown.section;
    }
    std::string line = shown.value.empty() ? "# " + std::string(shown.key) + " is not set"
                                           : std::string(shown.key) + " = " + shown.value;
    line.append(line.size() < 32 ? 32 - line.size() : 1, ' ').append("# ");
    text += line + printable(origins ? to_string(shown.origin) : std::string(shown.meaning)) + "\n";
  }
  if (origins) {
    for (const std::string& path : places.files())
      text += "\n# " + printable(path) + (exists(path) ? " was read" : " does not exist");
    for (const char* name : kVariables)
      if (const std::string value = base::variable(name); !value.empty())
        text += "\n# " + std::string(name) + "=" + printable(value) + " in the environment";
    return text;
  }
  text.pop_back();
  return text;
}

std::string show_json(const Config& values, const ConfigPlaces& places) {
  std::vector<std::string> settings;
  for (const Shown& shown : config::show(values)) {
    JsonObject setting;
    setting.text("key", std::string(shown.section) + "." + std::string(shown.key));
    if (!shown.value.empty()) setting.raw("value", shown.value);
    setting.text("origin", shown.origin.file.empty() ? "default" : "file");
    if (!shown.origin.file.empty())
      setting.text("file", shown.origin.file).number("line", shown.origin.line);
    settings.push_back(setting.str());
  }
  std::vector<std::string> files;
  for (const std::string& path : places.files())
    files.push_back(
        JsonObject().text("path", path).raw("exists", exists(path) ? "true" : "false").str());
  JsonObject environment;
  for (const char* name : kVariables)
    if (const std::string value = base::variable(name); !value.empty())
      environment.text(name, value);
  return JsonObject()
      .text("schema", "mete.config/1")
      .text("at", timestamp())
      .raw("settings", json_array(settings))
      .raw("files", json_array(files))
      .raw("environment", environment.str())
      .str();
}

int run_show(const Parsed& parsed, const Output& output) {
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  const ConfigPlaces places = ConfigPlaces::from_environment(true);
  const Result<Config> values = config::load_config(places);
  if (!values) return output.fail(values.error(), kExitBadFile);
  output.data(output.json() ? show_json(*values, places)
                            : show_text(*values, places, parsed.has("--origin")));
  return kExitOk;
}

int run_check(const Parsed& parsed, const Output& output) {
  if (const Result<void> r = no_more_than(2, parsed.rest); !r) return output.fail(r.error());
  if (parsed.has("--origin"))
    return output.fail(
        Error::invalid("--origin belongs to show").with_hint("mete config show --origin"));
  ConfigPlaces places = ConfigPlaces::from_environment(true);
  if (parsed.rest.size() == 2) places.override = parsed.rest[1];
  std::vector<std::string> good;
  std::vector<Error> errors;
  Config values;
  for (const std::string& path : places.files()) {
    if (places.override.empty() && !exists(path)) continue;
    std::vector<Error> found = config::read_config(path, values);
    if (found.empty()) good.push_back(path);
    errors.insert(errors.end(), found.begin(), found.end());
  }
  for (const Error& error : errors) (void)output.fail(error, kExitBadFile);
  if (!errors.empty()) return kExitBadFile;
  if (output.json()) {
    output.data(show_json(values, places));
    return kExitOk;
  }
  for (const std::string& path : good) output.data(printable(path) + ": good");
  if (good.empty()) output.say("there is no configuration file; the defaults apply");
  return kExitOk;
}

int run_config(const Parsed& parsed, const Output& output) {
  const Result<std::string> word = sub_word("config", parsed.rest, {"show", "check"});
  if (!word) return output.fail(word.error());
  return *word == "show" ? run_show(parsed, output) : run_check(parsed, output);
}

}  // namespace

const Verb kConfigVerb{
    "config",
    "show the configuration, or check a configuration file",
    "mete config show [--origin] | check [FILE]",
    "mete config show --origin\n"
    "mete config show > ~/.config/mete/config.toml       # a file to begin with\n"
    "mete config check new.toml",
    "mete reads /etc/mete/config.toml, then $XDG_CONFIG_HOME/mete/config.toml; the later file "
    "overrides the earlier. METE_CONFIG=FILE replaces both. show prints the values in effect, as a "
    "configuration file. check prints all errors with line and column, and then returns exit code "
    "65. A running daemon takes new values with mete daemon reload.",
    kConfigOptions,
    Rest::kWords,
    run_config,
    {"show", "check"},
};

}  // namespace mete::cli
