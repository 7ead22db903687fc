// SPDX-License-Identifier: Apache-2.0
// Bytes: an amount of memory, never a bare integer. Built by named constructors, parsed once at the
// edge, checked on every operation: overflow is either nullopt (checked_*) or, for operators, a bug
// that asserts. G = GiB = 2^30 and GB = 10^9 everywhere.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mete::base {

class Bytes {
 public:
  constexpr Bytes() = default;
  static constexpr Bytes from_bytes(std::uint64_t count) { return Bytes(count); }
  static constexpr Bytes from_kib(std::uint64_t count) { return scaled(count, 10); }
  static constexpr Bytes from_mib(std::uint64_t count) { return scaled(count, 20); }
  static constexpr Bytes from_gib(std::uint64_t count) { return scaled(count, 30); }

  constexpr std::uint64_t count() const { return count_; }
  constexpr bool is_zero() const { return count_ == 0; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  constexpr auto operator<=>(const Bytes&) const = default;

  constexpr std::optional<Bytes> checked_add(Bytes other) const {
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(count_, other.count_, &sum)) return std::nullopt;
    return Bytes(sum);
  }
  constexpr std::optional<Bytes> checked_sub(Bytes other) const {
    if (other.count_ > count_) return std::nullopt;
    return Bytes(count_ - other.count_);
  }
  constexpr std::optional<Bytes> checked_mul(std::uint64_t factor) const {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(count_, factor, &product)) return std::nullopt;
    return Bytes(product);
  }
  // floor(this * numerator / denominator), exact: the product is formed in 128 bits. nullopt when
  // the result does not fit. 143771 MiB at 400/1000 is 57508 MiB and 400 KiB, cut to the byte.
  constexpr std::optional<Bytes> checked_scale(std::uint64_t numerator,
                                               std::uint64_t denominator) const {
    METE_ASSERT(denominator != 0);
    const Wide scaled_count = static_cast<Wide>(count_) * numerator / denominator;
    if (scaled_count > static_cast<Wide>(UINT64_MAX)) return std::nullopt;
    return Bytes(static_cast<std::uint64_t>(scaled_count));
  }
  constexpr Bytes round_down(Bytes granule) const {
    METE_ASSERT(granule.count_ != 0);
    return Bytes(count_ - count_ % granule.count_);
  }

  // For readings, which may be anything: saturate at the maximum and at zero.
  constexpr Bytes plus(Bytes other) const { return checked_add(other).value_or(Bytes(UINT64_MAX)); }
  constexpr Bytes minus(Bytes other) const { return checked_sub(other).value_or(Bytes()); }

  constexpr Bytes operator+(Bytes other) const { return must(checked_add(other)); }
  constexpr Bytes operator-(Bytes other) const { return must(checked_sub(other)); }
  constexpr Bytes operator*(std::uint64_t factor) const { return must(checked_mul(factor)); }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  __extension__ using Wide = unsigned __int128;

  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}
  static constexpr Bytes scaled(std::uint64_t count, int shift) {
    METE_ASSERT(count <= (UINT64_MAX >> shift));
    return Bytes(count << shift);
  }
  static constexpr Bytes must(std::optional<Bytes> bytes) {
    METE_ASSERT(bytes.has_value());
    return *bytes;
  }

  std::uint64_t count_ = 0;
};

// "512M", "8G", "8GiB", "8000MB", "8GB", "1.5G", "4096B": a number with up to three decimals and a
// unit (K, M, G, T, each plain or with iB for powers of 1024, with B for powers of 1000), in any
// case. A number without a unit is refused, since it might mean anything. Decimals are exact, cut
// to the byte.
Result<Bytes> parse_bytes(std::string_view text);

// For users: "8 GiB", "55.92 GiB", "512 MiB", "12 KiB", "100 bytes". Cut, never rounded up, to two
// decimals.
std::string to_string(Bytes bytes);

// For programs: the shortest text that parse_bytes reads back as this amount: "8G", "512M", "8GB",
// "4097B". Powers of 1024 win if two texts are equally short.
std::string to_exact_string(Bytes bytes);

// For hints: a short size that parse_bytes reads as this amount or a little less: "139.7G",
// "23.5G", "512M".
std::string to_short_size(Bytes bytes);

}  // namespace mete::base

namespace mete {
using base::Bytes;
}  // namespace mete
