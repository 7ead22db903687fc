// SPDX-License-Identifier: Apache-2.0
// Comma-separated values with a line of names first: rows in, fields by name out. Fields may be in
// double quotes, with a quote in them doubled, but do not span lines. Errors name file, line and
// column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::simulate {

class Csv {
 public:
  // invalid: no line of names, a name twice.
  static Result<Csv> open(std::string_view text, std::string path);

  // invalid: there is no such column.
  Result<std::size_t> column(std::string_view name) const;
  std::optional<std::size_t> optional_column(std::string_view name) const;

  const std::vector<std::string>& names() const { return names_; }

  // The next row that is not empty; false: there is none. invalid: another number of fields than
  // names, an unclosed quote.
  Result<bool> next();
  const std::string& field(std::size_t column) const { return fields_[column]; }
  // A whole number from 0 to `most`.
  Result<std::int64_t> number(std::size_t column, std::int64_t most) const;
  // "nodes.csv:12: message".
  Error error(const std::string& message) const;

 private:
  Csv(std::string_view text, std::string path) : rest_(text), path_(std::move(path)) {}
  bool take_line(std::string_view& line);
  Result<void> split(std::string_view line);

  std::string_view rest_;
  std::string path_;
  std::size_t line_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> fields_;
};

}  // namespace mete::simulate
