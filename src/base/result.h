// SPDX-License-Identifier: Apache-2.0
// Result<T> holds a value or an Error. Errors are values because they are stored, sent over HTTP,
// injected by tests, and because part of our code runs under C frames where a throw is fatal. An
// Error says what happened (message), what was seen (evidence) and what to do (hint); its code
// drives behaviour. Asking a Result for what it does not hold is a bug in the caller and asserts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace mete::base {

enum class ErrorCode {
  kInvalid,      // the input is wrong; a retry will not help
  kNotFound,     // no such thing
  kDenied,       // it exists, but this user may not
  kBusy,         // retry
  kExhausted,    // no room now; waiting helps
  kInfeasible,   // no room ever on this machine
  kIo,           // the operating system or the driver failed
  kCorrupt,      // bytes that should be readable are not
  kUnsupported,  // understood, but not offered here
};

// "invalid", "not_found", ...: as in the JSON error object.
std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;
  std::string evidence = {};
  std::string hint = {};

  static Error invalid(std::string message) { return {ErrorCode::kInvalid, std::move(message)}; }
  static Error not_found(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
  static Error denied(std::string message) { return {ErrorCode::kDenied, std::move(message)}; }
  static Error busy(std::string message) { return {ErrorCode::kBusy, std::move(message)}; }
  static Error exhausted(std::string message) {
    return {ErrorCode::kExhausted, std::move(message)};
  }
  static Error infeasible(std::string message) {
    return {ErrorCode::kInfeasible, std::move(message)};
  }
  static Error io(std::string message) { return {ErrorCode::kIo, std::move(message)}; }
  static Error corrupt(std::string message) { return {ErrorCode::kCorrupt, std::move(message)}; }
  static Error unsupported(std::string message) {
    return {ErrorCode::kUnsupported, std::move(message)};
  }
  // "open /var/lib/mete/log: Permission denied". ENOENT is not_found; EACCES and EPERM are denied;
  // EAGAIN, EBUSY and a shortage of descriptors or memory (EMFILE, ENFILE, ENOMEM, ENOBUFS) are
  // busy; ENOSPC and EDQUOT are exhausted; everything else is io.
  static Error from_errno(std::string_view what, int error_number);
  // The message with the cause as evidence: a shortage stays one, everything else is io.
  static Error because(std::string message, const Error& cause) {
    return {cause.is_shortage() ? cause.code : ErrorCode::kIo, std::move(message), cause.message};
  }

  // Descriptors, memory or disk space are short now: a later retry helps.
  bool is_shortage() const { return code == ErrorCode::kBusy || code == ErrorCode::kExhausted; }

  Error with_evidence(std::string text) && {
    evidence = std::move(text);
    return std::move(*this);
  }
  Error with_hint(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
  }
  // Adds context on the way up: "context: message".
  Error within(std::string_view context) &&;

  bool operator==(const Error&) const = default;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    METE_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    METE_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    METE_ASSERT(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    METE_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    METE_ASSERT(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

// Success without a value: `return {};`.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT: implicit

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }

  const Error& error() const& {
    METE_ASSERT(!ok_);
    return error_;
  }
  Error&& error() && {
    METE_ASSERT(!ok_);
    return std::move(error_);
  }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace mete::base

// Names that every folder uses are visible in all of mete.
namespace mete {
using base::Error;
using base::ErrorCode;
using base::Result;
}  // namespace mete
