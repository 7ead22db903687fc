// SPDX-License-Identifier: Apache-2.0
#include "core/service/spec.h"

#include <gtest/gtest.h>

#include <functional>

namespace mete::core::service {
namespace {

std::string message(const std::function<void(ServiceSpec&)>& change) {
  ServiceSpec spec;
  spec.name = "chat";
  change(spec);
  const Result<void> fine = check(spec);
  return fine ? "fine" : fine.error().message;
}

TEST(ServiceSpec, NamesArePartsOfAddresses) {
  for (const char* name : {"a", "chat", "Chat-2", "a--b"})
    EXPECT_TRUE(check_service_name(name).ok()) << name;
  for (const char* name : {"", "2chat", "-a", "a-", "a_b", "a/b", "a.b", "\xc3\xa4", "v1"})
    EXPECT_FALSE(check_service_name(name).ok()) << name;
  EXPECT_TRUE(check_service_name(std::string(kMaxName, 'a')).ok());
  EXPECT_FALSE(check_service_name(std::string(kMaxName + 1, 'a')).ok());
}

TEST(ServiceSpec, NamesTheKeyThatIsWrong) {
  EXPECT_EQ(message([](auto&) {}), "fine");
  EXPECT_EQ(message([](auto& s) { s.models = {"a", "b", "a"}; }), "models has 'a' twice");
  EXPECT_EQ(message([](auto& s) { s.models = {""}; }), "models has an empty name");
  EXPECT_EQ(message([](auto& s) { s.concurrency = 0; }), "concurrency is 0");
  EXPECT_EQ(message([](auto& s) { s.queue = 1'000'000; }), "queue is 1000000");
  EXPECT_EQ(message([](auto& s) { s.hold_s = 0; }), "hold is 0 s");
  EXPECT_EQ(message([](auto& s) {
              s.ready = {Probe::Kind::kHttp, "health", {}};
            }),
            "ready: http is 'health', which is no path");
  EXPECT_EQ(message([](auto& s) {
              s.live = Probe{Probe::Kind::kExec, "", {}};
            }),
            "live: exec has no command");
  EXPECT_EQ(message([](auto& s) { s.no_wake = {"metrics"}; }),
            "no_wake has 'metrics', which is no path");
  EXPECT_EQ(message([](auto& s) { s.scaling.window_s = 15; }), "window is 15 s");
  EXPECT_EQ(message([](auto& s) { s.resident = true, s.scaling.min = 0; }),
            "resident: always needs a replica that is always there");
  EXPECT_EQ(message([](auto& s) { s.resident = true, s.park_after_s = 9; }),
            "park_after and resident: always contradict each other");
}

TEST(ServiceSpec, ParksByItselfOnlyWhereNoReplicaIsNeeded) {
  ServiceSpec spec;
  EXPECT_EQ(spec.parks_after_s(), std::nullopt);
  spec.scaling.min = 0;
  EXPECT_EQ(spec.parks_after_s(), 60);
  spec.park_after_s = 5;
  EXPECT_EQ(spec.parks_after_s(), 5);
  spec.parks_never = true;
  EXPECT_EQ(spec.parks_after_s(), std::nullopt);
}

}  // namespace
}  // namespace mete::core::service
