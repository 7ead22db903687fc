// SPDX-License-Identifier: Apache-2.0
#include "daemon/courier.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/file.h"
#include "tests/support/manual_loop.h"

namespace mete::daemon {
namespace {

class CourierTest : public testing::Test {
 protected:
  CourierTest() {
    char name[] = "/tmp/mete-courier-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~CourierTest() override { std::filesystem::remove_all(folder_); }
  // Delivers by this script instead of mete-notify.
  std::optional<Result<void>> deliver(const std::string& script) {
    std::string program;
    if (!script.empty()) {
      program = folder_ + "/notify";
      EXPECT_TRUE(base::write_atomic(program, "#!/bin/sh\n" + script + "\n", 0700));
    }
    Courier courier(program, "/usr/sbin/sendmail", loop_.loop());
    std::optional<Result<void>> done;
    engine::Delivery delivery;
    delivery.target = *core::parse_notify("mail:alice@example.org");
    delivery.what.id = "12";
    courier.deliver(delivery, [&](Result<void> result) { done = std::move(result); });
    EXPECT_FALSE(done) << "never from within deliver()";
    (void)loop_.until([&] { return done.has_value(); }, seam::Milliseconds(10));
    return done;
  }
  std::string folder_;
  support::ManualLoop loop_;
};

TEST_F(CourierTest, WhatWasDeliveredIsGood) {
  const std::optional<Result<void>> done = deliver("exit 0");
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->ok());
  EXPECT_EQ(loop_.watched(), 0u);
}

TEST_F(CourierTest, TheFirstLineSaysWhyItFailed) {
  const std::optional<Result<void>> done =
      deliver("echo 'no such user' >&4; echo more >&4; exit 1");
  ASSERT_TRUE(done);
  ASSERT_FALSE(done->ok());
  EXPECT_EQ(done->error().message, "no such user");
}

TEST_F(CourierTest, OneThatIsKilledFailed) {
  const std::optional<Result<void>> done = deliver("kill -9 $$");
  ASSERT_TRUE(done);
  EXPECT_EQ(done->error().message, "mete-notify failed");
}

TEST_F(CourierTest, WithoutTheProgramEveryDeliveryFails) {
  const std::optional<Result<void>> done = deliver("");
  ASSERT_TRUE(done);
  EXPECT_EQ(done->error().code, ErrorCode::kNotFound);
}

TEST_F(CourierTest, ACourierThatIsGoneCallsNobody) {
  bool called = false;
  {
    Courier courier("", "", loop_.loop());
    courier.deliver({}, [&](const Result<void>&) { called = true; });
  }
  loop_.advance(seam::Milliseconds(100));
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace mete::daemon
