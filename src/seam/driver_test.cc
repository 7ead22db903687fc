// SPDX-License-Identifier: Apache-2.0
#include "seam/driver.h"

#include <gtest/gtest.h>

namespace mete::seam {
namespace {

TEST(CardReading, CapacityIsTotalLessTheDriversPart) {
  CardReading card;
  EXPECT_EQ(card.capacity(), std::nullopt);
  card.total = Bytes::from_mib(143771);
  EXPECT_EQ(card.capacity(), Bytes::from_mib(143771)) << "an old driver does not report its part";
  card.reserved = Bytes::from_mib(600);
  EXPECT_EQ(card.capacity(), Bytes::from_mib(143171));
  card.reserved = Bytes::from_mib(200000);
  EXPECT_EQ(card.capacity(), std::nullopt) << "nonsense is not a capacity";
}

TEST(Uuid, ReadsWhatItWrites) {
  const std::string text = "GPU-01234567-89ab-cdef-fedc-ba9876543210";
  const std::optional<UuidBytes> bytes = parse_uuid(text);
  ASSERT_TRUE(bytes);
  EXPECT_EQ((*bytes)[0], 0x01);
  EXPECT_EQ((*bytes)[15], 0x10);
  EXPECT_EQ(to_string(*bytes), text);
  EXPECT_EQ(parse_uuid("GPU-01234567-89AB-CDEF-FEDC-BA9876543210"), bytes);
}

TEST(Uuid, RefusesEverythingElse) {
  for (const char* text :
       {"", "GPU-", "GPU-01234567-89ab-cdef-fedc-ba987654321",
        "GPU-01234567-89ab-cdef-fedc-ba98765432100", "MIG-01234567-89ab-cdef-fedc-ba9876543210",
        "GPU-0123456789ab-cdef-fedc-ba987654321000", "GPU-01234567-89ab-cdef-fedc-ba987654321g",
        "gpu-01234567-89ab-cdef-fedc-ba9876543210"})
    EXPECT_FALSE(parse_uuid(text)) << text;
}

TEST(Clock, MonotonicTimeDoesNotGoBack) {
  Clock& clock = system_clock();
  const Nanoseconds first = clock.monotonic();
  EXPECT_GT(first.count(), 0);
  EXPECT_GE(clock.monotonic(), first);
}

}  // namespace
}  // namespace mete::seam
