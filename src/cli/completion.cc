// SPDX-License-Identifier: Apache-2.0
// `mete completion SHELL`: a script that completes verbs, options and job ids, made from the same
// table as --help. After the first word of the user's command the shell's own completion of
// commands and files takes over. bash_script(), zsh_script() and fish_script() each go over the
// verbs and add their options, their second words, and the command that lists ids.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/help.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

std::vector<std::string> option_names(const Verb& verb) {
  std::vector<std::string> names;
  for (const OptionSpec& option : verb.options)
    if (option.offered()) names.emplace_back(option.name);
  names.emplace_back(kHelpOption.name);
  return names;
}

std::vector<std::string> value_options(const Verb& verb) {
  std::vector<std::string> names;
  for (const OptionSpec& option : verb.options) {
    if (!option.offered() || option.value.empty() || option.value_optional) continue;
    names.emplace_back(option.name);
    if (!option.short_name.empty()) names.emplace_back(option.short_name);
  }
  return names;
}

std::string verb_names() {
  std::vector<std::string> names;
  for (const Verb* verb : verbs()) names.emplace_back(verb->name);
  return base::join(names, " ");
}

std::string words_of(const Verb& verb) {
  std::vector<std::string> words(verb.words.begin(), verb.words.end());
  if (verb.name == "help") return verb_names();
  return base::join(words, " ");
}

// The command that lists the job ids or names for this verb; "": it takes none.
std::string jobs_for(const Verb& verb) {
  constexpr std::array<std::string_view, 8> kUnfinished{"attach", "cancel",   "explain", "hold",
                                                        "park",   "priority", "release", "unpark"};
  constexpr std::array<std::string_view, 5> kAll{"logs", "ps", "requeue", "show", "wait"};
  const auto in = [&verb](const auto& list) {
    return std::find(list.begin(), list.end(), verb.name) != list.end();
  };
  if (verb.name == "sweep") return "mete sweep ls -q";
  return in(kUnfinished) ? "mete ps -q" : in(kAll) ? "mete ps -q -a" : "";
}

std::string bash_script() {
  std::string cases;
  for (const Verb* verb : verbs()) {
    cases += "    " + std::string(verb->name) + ") options=\"" +
             base::join(option_names(*verb), " ") + "\" values=\"" +
             base::join(value_options(*verb), " ") + "\" words=\"" + words_of(*verb) +
             "\" jobs=\"" + jobs_for(*verb) +
             "\" command=" + (verb->rest == Rest::kCommand ? "1" : "0") + " ;;\n";
  }
  return R"(# mete completion for bash: source <(mete completion bash)
_mete() {
  local word="${COMP_WORDS[COMP_CWORD]}" options="" values="" words="" jobs="" command=0 i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W ")" +
         verb_names() + R"(" -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]}" in
)" + cases +
         R"(    *) return ;;
  esac
  i=2
  while [ "$command" -eq 1 ] && [ "$i" -lt "$COMP_CWORD" ]; do
    case "${COMP_WORDS[i]}" in
      --) words=""; i=$((i + 1)); break ;;
      -*) case " $values " in *" ${COMP_WORDS[i]} "*) i=$((i + 1)) ;; esac ;;
      *) break ;;
    esac
    i=$((i + 1))
  done
  if [ "$command" -eq 1 ] && [ "$i" -lt "$COMP_CWORD" ] && [ -n "$words" ]; then
    case " $words " in *" ${COMP_WORDS[i]} "*) command=0; words="" ;; esac
  fi
  if [ "$command" -eq 1 ] && [ "$i" -lt "$COMP_CWORD" ]; then
    COMPREPLY=($(compgen -f -- "$word"))
    return
  fi
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) if [ "$command" -eq 1 ]; then COMPREPLY=($(compgen -c -- "$word") $(compgen -W "$words" -- "$word"))
       else words="$words $($jobs 2>/dev/null) "; COMPREPLY=($(compgen -W "$words" -- "$word")); fi ;;
  esac
}
complete -o default -F _mete mete)";
}

std::string zsh_script() {
  std::string list;
  std::string cases;
  for (const Verb* verb : verbs()) {
    list += "    '" + std::string(verb->name) + ":" + std::string(verb->summary) + "'\n";
    const std::string words = words_of(*verb);
    cases += "    " + std::string(verb->name) + ") compadd -- " +
             base::join(option_names(*verb), " ") + (words.empty() ? "" : " " + words) +
             (jobs_for(*verb).empty() ? "" : " $(" + jobs_for(*verb) + " 2>/dev/null)") +
             (verb->rest == Rest::kCommand ? "; _command_names -e" : "") + " ;;\n";
  }
  return "#compdef mete\n# mete completion for zsh: mete completion zsh > a folder of "
         "$fpath/_mete\n_mete() {\n"
         "  local -a verbs\n  verbs=(\n" +
         list + "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n" +
         "  case \"${words[2]}\" in\n" + cases + "  esac\n}\n_mete \"$@\"";
}

std::string fish_script() {
  std::string text = "# mete completion for fish: mete completion fish | source\n";
  for (const Verb* verb : verbs()) {
    const std::string name(verb->name);
    text += "complete -c mete -n __fish_use_subcommand -f -a " + name + " -d '" +
            std::string(verb->summary) + "'\n";
    const std::string seen = "complete -c mete -n '__fish_seen_subcommand_from " + name + "'";
    for (const std::string& option : option_names(*verb))
      text.append(seen).append(" -l ").append(option.substr(2)).append("\n");
    if (const std::string words = words_of(*verb); !words.empty())
      text.append(seen).append(" -f -a '").append(words).append("'\n");
    if (const std::string jobs = jobs_for(*verb); !jobs.empty())
      text.append(seen).append(" -f -a '(").append(jobs).append(" 2>/dev/null)'\n");
  }
  text.pop_back();
  return text;
}

int run_completion(const Parsed& parsed, const Output& output) {
  const std::string shell = parsed.rest.size() == 1 ? parsed.rest.front() : "";
  if (shell == "bash") {
    output.data(bash_script());
  } else if (shell == "zsh") {
    output.data(zsh_script());
  } else if (shell == "fish") {
    output.data(fish_script());
  } else {
    return output.fail(Error::invalid(shell.empty()
                                          ? "which shell is not said"
                                          : "there is no completion for " + base::quote(shell))
                           .with_hint("mete completion bash, zsh or fish"));
  }
  return kExitOk;
}

}  // namespace

const Verb kCompletionVerb{
    "completion",
    "print a completion script for a shell",
    "mete completion bash|zsh|fish",
    "source <(mete completion bash)\n"
    "mete completion fish | source",
    "",
    {},
    Rest::kWords,
    run_completion,
    {"bash", "zsh", "fish"},
};

}  // namespace mete::cli
