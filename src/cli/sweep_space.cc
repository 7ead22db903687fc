// SPDX-License-Identifier: Apache-2.0
// See sweep_space.h.
#include "cli/sweep_space.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace mete::cli {

using core::sweep::Expression;
using core::sweep::Parameter;
using core::sweep::Space;

Result<sweep::SpaceFile> SpaceReader::read_file() {
  const std::string* space = parsed_.find("--space");
  const std::string* talos = parsed_.find("--talos");
  if (space != nullptr && talos != nullptr)
    return Error::invalid("--space and --talos exclude each other").with_hint("give one of them");
  if (space == nullptr && talos == nullptr) return sweep::SpaceFile();
  const std::string& word = space != nullptr ? *space : *talos;
  in_file_ = true;
  path_ = word == "-" ? "(stdin)" : word;
  Result<std::string> text =
      base::read_all(word == "-" ? "/dev/stdin" : word, sweep::kMaxSpaceFile);
  if (!text && text.error().code == ErrorCode::kCorrupt)
    return Error::invalid(path_ + " is too large for the space of a sweep")
        .with_evidence("it may have " + std::to_string(sweep::kMaxSpaceFile >> 20) + " MiB");
  if (!text)
    return std::move(text).error().with_hint(space != nullptr
                                                 ? "mete sweep --space FILE reads a YAML file"
                                                 : "mete sweep --talos FILE reads a dictionary");
  return space != nullptr ? sweep::read_space_file(*text, path_) : sweep::read_talos(*text, path_);
}

// A --grid replaces the values of a parameter of the file, whose condition stays.
Result<void> SpaceReader::add_grid(std::vector<Parameter>& params) const {
  const std::size_t of_file = params.size();
  for (const std::string& option : parsed_.all("--grid")) {
    Result<Parameter> parameter = sweep::parse_grid(option);
    if (!parameter) return std::move(parameter).error();
    const auto end = params.begin() + static_cast<std::ptrdiff_t>(of_file);
    const auto known = std::find_if(
        params.begin(), end, [&](const Parameter& each) { return each.name == parameter->name; });
    if (known != end)
      known->domain = std::move(parameter->domain);
    else
      params.push_back(*std::move(parameter));
  }
  return {};
}

Result<SpaceInput> SpaceReader::read() {
  SpaceInput input;
  Result<sweep::SpaceFile> file = read_file();
  if (!file) return std::move(file).error();
  input.file = *std::move(file);
  input.path = path_;
  in_file_ = false;
  std::vector<Parameter> params = std::exchange(input.file.params, {});
  if (Result<void> r = add_grid(params); !r) return std::move(r).error();
  if (params.empty())
    return Error::invalid("the sweep has no parameters")
        .with_hint("--grid lr=0.1,0.01, or --space FILE");
  std::optional<Expression> keep = input.file.keep;
  if (const std::string* text = parsed_.find("--keep"); text != nullptr) {
    std::vector<std::string> names;
    for (const Parameter& parameter : params) names.push_back(parameter.name);
    Result<Expression> parsed = Expression::parse(*text, names);
    if (!parsed) return std::move(parsed).error().within("--keep");
    keep = *std::move(parsed);
  }
  in_file_ = !path_.empty();
  Result<Space> space = Space::make(std::move(params), std::move(keep));
  if (!space) return in_file_ ? std::move(space).error().within(path_) : std::move(space).error();
  in_file_ = false;
  input.space = *std::move(space);
  return input;
}

}  // namespace mete::cli
