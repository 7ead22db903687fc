// SPDX-License-Identifier: Apache-2.0
// See csv.h.
#include "simulate/csv.h"

#include <algorithm>

#include "base/text.h"

namespace mete::simulate {

Error Csv::error(const std::string& message) const {
  return Error::invalid(path_ + ":" + std::to_string(line_) + ": " + message);
}

bool Csv::take_line(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++line_;
  return true;
}

Result<void> Csv::split(std::string_view line) {
  std::size_t n = 0;
  const auto slot = [&]() -> std::string& {
    if (fields_.size() <= n) fields_.emplace_back();
    fields_[n].clear();
    return fields_[n++];
  };
  std::size_t at = 0;
  while (true) {
    std::string& field = slot();
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at >= line.size()) return error("a quote is not closed");
        if (line[at] == '"' && at + 1 < line.size() && line[at + 1] == '"')
          ++at;
        else if (line[at] == '"')
          break;
        field += line[at];
      }
      ++at;
      if (at < line.size() && line[at] != ',') return error("text follows a closed quote");
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      field.assign(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) break;
    ++at;  // the comma; an empty field may follow
  }
  fields_.resize(n);
  return {};
}

Result<Csv> Csv::open(std::string_view text, std::string path) {
  Csv csv(text, std::move(path));
  std::string_view line;
  if (!csv.take_line(line) || base::trim(line).empty()) {
    csv.line_ = 1;
    return csv.error("the first line must name the columns");
  }
  if (line.starts_with("\xef\xbb\xbf"))
    line.remove_prefix(3);  // some programs write a byte order
                            // mark
  if (Result<void> r = csv.split(line); !r) return r.error();
  csv.names_ = csv.fields_;
  for (std::size_t i = 0; i < csv.names_.size(); ++i)
    if (std::find(csv.names_.begin(), csv.names_.begin() + static_cast<std::ptrdiff_t>(i),
                  csv.names_[i]) != csv.names_.begin() + static_cast<std::ptrdiff_t>(i))
      return csv.error("there are two columns " + base::quote(csv.names_[i]));
  return csv;
}

std::optional<std::size_t> Csv::optional_column(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names_.begin());
}

Result<std::size_t> Csv::column(std::string_view name) const {
  if (const std::optional<std::size_t> found = optional_column(name)) return *found;
  return Error::invalid(path_ + ":1: there is no column " + base::quote(name))
      .with_evidence("the columns are " + base::join(names_, ", "));
}

Result<bool> Csv::next() {
  std::string_view line;
  do {
    if (!take_line(line)) return false;
  } while (base::trim(line).empty());
  if (Result<void> r = split(line); !r) return r.error();
  if (fields_.size() != names_.size())
    return error("there are " + std::to_string(fields_.size()) + " fields for " +
                 std::to_string(names_.size()) + " columns");
  return true;
}

Result<std::int64_t> Csv::number(std::size_t column, std::int64_t most) const {
  const Result<std::uint64_t> value = base::parse_uint(base::trim(fields_[column]));
  if (!value)
    return error(names_[column] + " must be a whole number from 0, not " +
                 base::quote(fields_[column]));
  if (*value > static_cast<std::uint64_t>(most))
    return error(names_[column] + " is " + std::to_string(*value) + "; the most is " +
                 std::to_string(most));
  return static_cast<std::int64_t>(*value);
}

}  // namespace mete::simulate
