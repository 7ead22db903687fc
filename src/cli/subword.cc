// SPDX-License-Identifier: Apache-2.0
// See subword.h.
#include "cli/subword.h"

#include <algorithm>

#include "base/text.h"

namespace mete::cli {

Result<std::string> sub_word(std::string_view verb, const std::vector<std::string>& rest,
                             const std::vector<std::string_view>& words) {
  std::vector<std::string> all(words.begin(), words.end());
  const std::string mete = "mete " + std::string(verb) + " ";
  const std::string hint = mete + base::join(all, " or " + mete);
  if (rest.empty())
    return Error::invalid("what mete " + std::string(verb) + " shall do is not said")
        .with_hint(hint);
  if (std::find(words.begin(), words.end(), rest.front()) != words.end()) return rest.front();
  const std::string_view near = base::nearest(rest.front(), words);
  return Error::invalid("there is no " + mete + base::quote(rest.front()))
      .with_hint(near.empty() ? hint : "did you mean " + mete + std::string(near) + "?");
}

Result<void> no_more_than(std::size_t most, const std::vector<std::string>& rest) {
  if (rest.size() <= most) return {};
  return Error::invalid(base::quote(rest[most]) + " is not expected here")
      .with_hint("--help shows how it is used");
}

}  // namespace mete::cli
