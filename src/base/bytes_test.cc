// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

namespace mete {
namespace {

using base::parse_bytes;
using base::to_exact_string;
using base::to_short_size;

std::uint64_t parsed(std::string_view text) {
  const Result<Bytes> bytes = parse_bytes(text);
  EXPECT_TRUE(bytes.ok()) << text << ": " << (bytes.ok() ? "" : bytes.error().message);
  return bytes.ok() ? bytes->count() : 0;
}

std::string refused(std::string_view text) {
  const Result<Bytes> bytes = parse_bytes(text);
  EXPECT_FALSE(bytes.ok()) << text;
  if (bytes.ok()) return "";
  EXPECT_EQ(bytes.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(bytes.error().hint.empty());
  return bytes.error().message;
}

TEST(Bytes, ParsesBinaryAndDecimalUnits) {
  EXPECT_EQ(parsed("512M"), 512ull << 20);
  EXPECT_EQ(parsed("8G"), 8ull << 30);
  EXPECT_EQ(parsed("8GiB"), 8ull << 30);
  EXPECT_EQ(parsed("8000MB"), 8'000'000'000ull);
  EXPECT_EQ(parsed("8GB"), 8'000'000'000ull);
  EXPECT_EQ(parsed("8gb"), 8'000'000'000ull);
  EXPECT_EQ(parsed("1T"), 1ull << 40);
  EXPECT_EQ(parsed("7B"), 7u);
}

TEST(Bytes, ParsesDecimalsExactly) {
  EXPECT_EQ(parsed("1.5G"), 3ull << 29);
  EXPECT_EQ(parsed("0.001GB"), 1'000'000u);
  EXPECT_EQ(parsed("0.1K"), 102u);  // 102.4, cut
}

TEST(Bytes, RefusesWhatIsNotASize) {
  EXPECT_EQ(refused("8Q"), "'8Q' is not a size: there is no unit 'Q'");
  EXPECT_EQ(refused("8"), "'8' is not a size: the unit is missing");
  EXPECT_EQ(refused(""), "'' is not a size: it is empty");
  EXPECT_EQ(refused("-1G"), "'-1G' is not a size: it is negative");
  EXPECT_EQ(refused("G"), "'G' is not a size: it does not begin with a number");
  EXPECT_EQ(refused("1.2345G"), "'1.2345G' is not a size: more than three decimals");
  EXPECT_EQ(refused("17179869184G"), "'17179869184G' is not a size: it is larger than 2^64 bytes");
  EXPECT_EQ(refused("99999999999999999999G"),
            "'99999999999999999999G' is not a size: '99999999999999999999' is too large a number");
  refused("1..5G");
  refused("8 G");
  refused("8G ");
  refused("1.G");
}

TEST(Bytes, TheLargestAmountParses) {
  EXPECT_EQ(parsed("18446744073709551615B"), UINT64_MAX);
  refused("18446744073709551616B");
}

TEST(Bytes, PrintsForPeople) {
  EXPECT_EQ(to_string(Bytes::from_gib(8)), "8 GiB");
  EXPECT_EQ(to_string(Bytes::from_mib(512)), "512 MiB");
  EXPECT_EQ(to_string(Bytes::from_mib(143771)), "140.4 GiB");
  EXPECT_EQ(to_string(Bytes::from_bytes(8'000'000'000)), "7.45 GiB");
  EXPECT_EQ(to_string(Bytes::from_gib(1) - Bytes::from_bytes(1)), "1023.99 MiB");
  EXPECT_EQ(to_string(Bytes::from_mib(1027)), "1 GiB");
  EXPECT_EQ(to_string(Bytes::from_bytes(1)), "1 byte");
  EXPECT_EQ(to_string(Bytes()), "0 bytes");
}

TEST(Bytes, ExactTextReadsBackAsTheSameAmount) {
  for (const std::uint64_t count : {0ull, 1ull, 1023ull, 1024ull, 1ull << 20, (1ull << 30) + 1,
                                    8ull << 30, ~0ull, 8'000'000'000ull, 1'500'000ull, 2'000ull}) {
    const Bytes bytes = Bytes::from_bytes(count);
    EXPECT_EQ(parsed(to_exact_string(bytes)), count) << to_exact_string(bytes);
  }
  EXPECT_EQ(to_exact_string(Bytes::from_gib(8)), "8G");
  EXPECT_EQ(to_exact_string(Bytes::from_mib(1536)), "1536M");
  EXPECT_EQ(to_exact_string(Bytes::from_bytes(8'000'000'000)), "8GB") << "and not 7812500K";
  EXPECT_EQ(to_exact_string(Bytes::from_bytes(1'500'000'000)), "1500MB");
  EXPECT_EQ(to_exact_string(Bytes::from_bytes(8'000'000'000'000)), "8TB") << "and not 8000GB";
  EXPECT_EQ(to_exact_string(Bytes::from_bytes(4'097)), "4097B");
  EXPECT_EQ(to_exact_string(Bytes::from_mib(143'770)), "143770M");
}

TEST(Bytes, ASizeToPasteIsShortAndNeverMore) {
  EXPECT_EQ(to_short_size(Bytes::from_mib(143'154)), "139.7G");
  EXPECT_EQ(to_short_size(Bytes::from_gib(8)), "8G");
  EXPECT_EQ(to_short_size(Bytes::from_mib(1023)), "1023M");
  EXPECT_EQ(to_short_size(Bytes::from_bytes((5ull << 30) - 1)), "4.9G");
  EXPECT_EQ(to_short_size(Bytes::from_gib(2'048)), "2048G");
}

TEST(Bytes, OverflowIsNoticed) {
  const Bytes most = Bytes::from_bytes(UINT64_MAX);
  const Bytes one = Bytes::from_bytes(1);
  EXPECT_FALSE(most.checked_add(one));
  EXPECT_FALSE(Bytes().checked_sub(one));
  EXPECT_FALSE(most.checked_mul(2));
  EXPECT_FALSE(most.checked_scale(1001, 1000));
  EXPECT_EQ(most.checked_scale(1000, 1000), most);
  EXPECT_DEATH((void)(most + one), "impossible");
  EXPECT_DEATH((void)Bytes::from_gib(1ull << 34), "impossible");
}

TEST(Bytes, SharesAreCutToTheGranule) {
  const Bytes card = Bytes::from_mib(143771);
  EXPECT_EQ(card.checked_scale(400, 1000)->round_down(Bytes::from_mib(2)), Bytes::from_mib(57508));
}

}  // namespace
}  // namespace mete
