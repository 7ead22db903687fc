// SPDX-License-Identifier: Apache-2.0
// See fill.h. pieces_of() divides a word into text and names; the check and the filling both go
// over its pieces, so that they agree on what a name is. Values are put in as they are: braces in a
// value mean nothing.
#include "core/sweep/fill.h"

#include <algorithm>
#include <optional>

#include "base/columns.h"
#include "base/mark.h"
#include "base/text.h"

namespace mete::core::sweep {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A part of a word.
struct Piece {
  bool is_name = false;
  std::string_view text;  // of the word; without the braces
  std::size_t at = 0;     // of its first byte in the word, the brace included
};

// The identifier in braces that begins here; "" if there is none.
std::string_view name_in_braces(std::string_view text) {
  if (text.size() < 3 || text[0] != '{' || !is_letter(text[1])) return {};
  std::size_t end = 2;
  while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]) || text[end] == '-'))
    ++end;
  return end < text.size() && text[end] == '}' ? text.substr(1, end - 1) : std::string_view();
}

std::vector<Piece> pieces_of(std::string_view word) {
  std::vector<Piece> pieces;
  std::size_t begin = 0, at = 0;  // text that is no piece yet: [begin, at)
  std::size_t doubled = 0;        // `{{` without their `}}` so far
  const auto end_text = [&](std::size_t next) {
    if (at > begin) pieces.push_back({false, word.substr(begin, at - begin), begin});
    begin = at = next;
  };
  while (at < word.size()) {
    const std::string_view rest = word.substr(at);
    if (rest.starts_with("${")) {
      at = std::min(word.find_first_not_of('{', at + 1), word.size());
    } else if (rest.starts_with("{{")) {
      ++doubled;
      ++at;
      end_text(at + 1);
    } else if (rest.starts_with("}}") && doubled > 0) {
      --doubled;
      ++at;
      end_text(at + 1);
    } else if (const std::string_view name = name_in_braces(rest); !name.empty()) {
      const std::size_t brace = at;
      end_text(at + name.size() + 2);
      pieces.push_back({true, name, brace});
    } else {
      ++at;
    }
  }
  end_text(at);
  return pieces;
}

const Value* find(const Params& params, std::string_view name) {
  const auto found = std::find_if(params.begin(), params.end(),
                                  [&](const auto& param) { return param.first == name; });
  return found == params.end() ? nullptr : &found->second;
}

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - begin;
  };
  const auto take = [&](std::string_view any) {
    const bool taken = at < text.size() && any.find(text[at]) != std::string_view::npos;
    at += taken ? 1 : 0;
    return taken;
  };
  take("-");
  const std::size_t first = at;
  const std::size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (take(".") && digits() == 0) return false;
  if (take("eE")) {
    take("+-");
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::string json_text(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const base::Character first = base::first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(1, first.size));
    if (first.size == 0)
      json += "\\ufffd";
    else if (first.code == '"' || first.code == '\\')
      (json += '\\') += bytes;
    else if (first.code == '\n')
      json += "\\n";
    else if (first.code == '\t')
      json += "\\t";
    else if (first.code < 0x20 || first.code == 0x7f)
      (json += "\\u00") += base::to_hex(bytes);
    else
      json += bytes;
    text.remove_prefix(bytes.size());
  }
  return json + '"';
}

std::string json_value(const Value& value) {
  if (value.kind == Value::Kind::kText) return json_text(value.text);
  if (value.kind == Value::Kind::kBool) return value.number != 0 ? "true" : "false";
  const std::string_view text =
      std::string_view(value.text).substr(value.text.starts_with('+') ? 1 : 0);
  return is_json_number(text) ? std::string(text) : of_real(value.number).text;
}

}  // namespace

Result<void> check_command(std::span<const std::string> words, std::span<const std::string> names) {
  for (const std::string& word : words) {
    for (const Piece& piece : pieces_of(word)) {
      if (!piece.is_name || std::find(names.begin(), names.end(), piece.text) != names.end())
        continue;
      const std::string_view near =
          piece.text.size() > 256 ? std::string_view()
                                  : base::nearest(piece.text, std::vector<std::string_view>(
                                                                  names.begin(), names.end()));
      const std::string literal =
          "{{" + base::printable(piece.text.substr(0, 80)) + "}} keeps the braces";
      return Error::invalid("the command uses a parameter that the space does not have: " +
                            base::quote(piece.text))
          .with_evidence(base::marked(word, piece.at))
          .with_hint(near.empty() ? literal
                                  : "did you mean {" + std::string(near) + "}? " + literal);
    }
  }
  return {};
}

std::vector<std::string> fill_command(std::span<const std::string> words,
                                      std::span<const std::string> names, const Params& params,
                                      bool as_flags) {
  std::vector<std::string> filled;
  filled.reserve(words.size() + (as_flags ? 2 * params.size() : 0));
  for (const std::string& word : words) {
    std::string& out = filled.emplace_back();
    for (const Piece& piece : pieces_of(word)) {
      if (!piece.is_name)
        out += piece.text;
      else if (const Value* value = find(params, piece.text))
        out += value->text;
      else if (std::find(names.begin(), names.end(), piece.text) == names.end())
        out.append("{").append(piece.text).append("}");
    }
  }
  if (!as_flags) return filled;
  for (const auto& [name, value] : params) {
    const bool is_bool = value.kind == Value::Kind::kBool;
    if (is_bool && value.number == 0) continue;
    filled.push_back("--" + name);
    if (!is_bool) filled.push_back(value.text);
  }
  return filled;
}

std::string environment_name(std::string_view parameter) {
  std::string name(parameter);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return name;
}

std::string to_json(const Params& params) {
  std::string json = "{";
  for (const auto& [name, value] : params) {
    if (json.size() > 1) json += ',';
    json += json_text(name) + ':' + json_value(value);
  }
  return json + '}';
}

}  // namespace mete::core::sweep
