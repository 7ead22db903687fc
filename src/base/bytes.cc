// SPDX-License-Identifier: Apache-2.0
// Sizes to and from text, in integers only: an amount of memory is never a float.
#include "base/bytes.h"

#include <array>

#include "base/text.h"

namespace mete::base {

namespace {

struct Unit {
  std::string_view name;  // lower case
  std::uint64_t factor;
};

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kK = 1000;

constexpr std::array<Unit, 13> kUnits{{
    {"b", 1},
    {"k", kKi},
    {"kib", kKi},
    {"kb", kK},
    {"m", kKi* kKi},
    {"mib", kKi* kKi},
    {"mb", kK* kK},
    {"g", kKi* kKi* kKi},
    {"gib", kKi* kKi* kKi},
    {"gb", kK* kK* kK},
    {"t", kKi* kKi* kKi* kKi},
    {"tib", kKi* kKi* kKi* kKi},
    {"tb", kK* kK* kK* kK},
}};

const Unit* find_unit(std::string_view name) {
  const std::string lower = to_lower(name);
  for (const Unit& unit : kUnits)
    if (unit.name == lower) return &unit;
  return nullptr;
}

constexpr std::string_view kUnitHint =
    "write a size as 512M, 8G or 8GiB (powers of 1024), or as 8000MB or 8GB (powers of 1000)";

Error bad_size(std::string_view text, std::string_view why) {
  return Error::invalid(quote(text) + " is not a size: " + std::string(why))
      .with_hint(std::string(kUnitHint));
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  if (text.empty()) return bad_size(text, "it is empty");
  if (text.front() == '-') return bad_size(text, "it is negative");
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, end);
  if (number.empty()) return bad_size(text, "it does not begin with a number");
  const Result<Milli> milli = parse_milli(number);
  if (!milli) return bad_size(text, milli.error().message);
  if (end == std::string_view::npos) return bad_size(text, "the unit is missing");
  const std::string_view unit_name = text.substr(end);
  const Unit* unit = find_unit(unit_name);
  if (unit == nullptr) return bad_size(text, "there is no unit " + quote(unit_name));
  const std::optional<Bytes> whole = Bytes::from_bytes(unit->factor).checked_mul(milli->whole);
  const std::optional<Bytes> part =
      Bytes::from_bytes(unit->factor).checked_scale(milli->thousandths, 1000);
  const std::optional<Bytes> sum = whole && part ? whole->checked_add(*part) : std::nullopt;
  if (!sum) return bad_size(text, "it is larger than 2^64 bytes");
  return *sum;
}

std::string to_string(Bytes bytes) {
  struct Scale {
    std::string_view name;
    std::uint64_t factor;
  };
  constexpr std::array<Scale, 3> kScales{
      {{" GiB", kKi * kKi * kKi}, {" MiB", kKi * kKi}, {" KiB", kKi}}};
  const std::uint64_t count = bytes.count();
  for (const Scale& scale : kScales) {
    if (count < scale.factor) continue;
    std::string text = std::to_string(count / scale.factor);
    const std::uint64_t hundredths = count % scale.factor * 100 / scale.factor;
    if (hundredths != 0) {
      text += '.';
      text += static_cast<char>('0' + hundredths / 10);
      if (hundredths % 10 != 0) text += static_cast<char>('0' + hundredths % 10);
    }
    return text.append(scale.name);
  }
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

std::string to_exact_string(Bytes bytes) {
  struct Scale {
    std::string_view name;
    std::uint64_t factor;
  };
  constexpr std::array<Scale, 8> kScales{{{"T", kKi * kKi * kKi * kKi},
                                          {"G", kKi * kKi * kKi},
                                          {"M", kKi * kKi},
                                          {"K", kKi},
                                          {"TB", kK * kK * kK * kK},
                                          {"GB", kK * kK * kK},
                                          {"MB", kK * kK},
                                          {"KB", kK}}};
  const std::uint64_t count = bytes.count();
  std::string shortest = std::to_string(count) + "B";
  for (const Scale& scale : kScales) {
    if (count == 0 || count % scale.factor != 0) continue;
    std::string text = std::to_string(count / scale.factor).append(scale.name);
    if (text.size() < shortest.size()) shortest = std::move(text);
  }
  return shortest;
}

std::string to_short_size(Bytes bytes) {
  constexpr Bytes kOneGi = Bytes::from_gib(1);
  if (bytes < kOneGi) return to_exact_string(bytes.round_down(Bytes::from_mib(1)));
  const std::uint64_t tenths =
      bytes.count() / kOneGi.count() * 10 + bytes.count() % kOneGi.count() * 10 / kOneGi.count();
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + "G";
}

}  // namespace mete::base
