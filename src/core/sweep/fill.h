// SPDX-License-Identifier: Apache-2.0
// How the parameters of a trial reach its command: `{name}` in a word is replaced by the value,
// `{{` is `{`, and the `}}` that belongs to it is `}`. Only identifiers in braces count, and not
// after `$`: `${HOME}`, `{1..3}`, `{a,b}`, `{}` and {"a": {"b": 1}} stay as they are. A parameter
// that is not in use is replaced by nothing; its word stays, perhaps empty.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/sweep/value.h"

namespace mete::core::sweep {

using Params = std::vector<std::pair<std::string, Value>>;

// invalid: a word names a parameter that is not in `names`; the evidence marks it, the hint has the
// nearest name.
Result<void> check_command(std::span<const std::string> words, std::span<const std::string> names);
// With `as_flags`, `--name value` is added for each parameter in use (`--name` alone for true,
// nothing for false). `names`: of all parameters, also those not in use.
std::vector<std::string> fill_command(std::span<const std::string> words,
                                      std::span<const std::string> names, const Params& params,
                                      bool as_flags);
// "LR" for lr, as in METE_PARAM_LR and SM_HP_LR: upper case, `-` is `_`.
std::string environment_name(std::string_view parameter);
// {"lr":0.001,"bs":32,"opt":"adam"}: numbers and bools as such, in the order given. Numbers keep
// their text where JSON has such numbers (not "+5" or "1."). Bytes that are not UTF-8 become
// U+FFFD.
std::string to_json(const Params& params);

}  // namespace mete::core::sweep
