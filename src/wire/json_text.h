// SPDX-License-Identifier: Apache-2.0
// JSON written straight into text, in the order of the calls: for documents of ten thousand jobs,
// for which building a tree of values takes longer than printing. It adds commas; the caller must
// alternate keys and values and close what it opened. Internal to wire/, except
// append_json_string().
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace mete::wire {

// With quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
bool is_utf8(std::string_view text);
// How many bytes at the beginning are ASCII that needs no escape: no control character, quote or
// backslash.
std::size_t plain_prefix(std::string_view text);
// "2026-11-15T05:50:43.123Z", as base::to_string has it.
void append_time(std::string& out, WallTime time);

class JsonText {
 public:
  JsonText() = default;
  explicit JsonText(std::size_t expected) { out_.reserve(expected); }

  void open() { begin('{'); }
  void close() { end('}'); }
  void open_list() { begin('['); }
  void close_list() { end(']'); }
  // Our own names: not escaped.
  JsonText& key(std::string_view name) {
    separate();
    ((out_ += '"') += name) += "\":";
    first_ = true;
    return *this;
  }

  // Text, a number, true or false, Bytes, a time, or a list or map of texts.
  template <class Value>
  void value(const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      raw(value ? "true" : "false");
    } else if constexpr (std::is_integral_v<Value>) {
      separate();
      char digits[24];
      out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    } else if constexpr (std::is_same_v<Value, Bytes>) {
      this->value(value.count());
    } else if constexpr (std::is_same_v<Value, WallTime>) {
      separate();
      out_ += '"';
      append_time(out_, value);
      out_ += '"';
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      open_list();
      for (const std::string& text : value) this->value(text);
      close_list();
    } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      separate();
      append_json_string(out_, value);
    } else {
      open();
      for (const auto& [name, of_name] : value) {
        separate();
        append_json_string(out_, name);
        out_ += ':';
        first_ = true;
        this->value(of_name);
      }
      close();
    }
  }
  template <class Value>
  void put(std::string_view name, const Value& value) {
    key(name).value(value);
  }
  template <class Value>
  void put_if(std::string_view name, const std::optional<Value>& value) {
    if (value) put(name, *value);
  }
  void put_if(std::string_view name, std::string_view text) {
    if (!text.empty()) put(name, text);
  }
  // Text that is read back byte for byte: bytes that are not UTF-8 give {"hex":"636166e9"}.
  void exact(std::string_view text);
  void raw(std::string_view json) {
    separate();
    out_ += json;
  }

  // Begins the next of several values, each on its own line.
  void line() {
    out_ += '\n';
    first_ = true;
  }

  std::string& out() { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void begin(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
  }
  void end(char bracket) {
    out_ += bracket;
    first_ = false;
  }

  std::string out_;
  bool first_ = true;  // no comma is needed yet
};

}  // namespace mete::wire
