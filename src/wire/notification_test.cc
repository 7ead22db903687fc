// SPDX-License-Identifier: Apache-2.0
#include "wire/notification.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

using core::NotifyWay;

Notification full() {
  return {"81-0",
          {1'800'000'000'123},
          core::NotifyOn::kOom,
          "12_3",
          kOddText,
          "alice",
          "gpu1",
          2,
          core::Outcome::kGpuOom,
          1,
          9,
          std::string("job 12_3 (") + kOddText + ") has ended"};
}

TEST(Notification, IsReadAsItWasWritten) {
  const Result<Notification> again = decode_notification(encode(full()));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, full());
  NotifyPlan plan{1000, {"/bin/sh", "-c", kOddBytes}, kOddText, {"A=1"}, 15};
  const Result<NotifyPlan> plan_again = decode_notify_plan(encode(plan));
  ASSERT_TRUE(plan_again) << plan_again.error().message;
  EXPECT_EQ(*plan_again, plan);
  plan.argv.clear();
  EXPECT_FALSE(decode_notify_plan(encode(plan)));
}

TEST(Notification, TheUrlIsNoArgument) {
  const NotifyPlan plan =
      plan_for(full(), {NotifyWay::kWebhook, "https://h/secret"}, 1000, "/usr/sbin/sendmail");
  for (const std::string& word : plan.argv) EXPECT_EQ(word.find("secret"), std::string::npos);
  EXPECT_NE(plan.input.find("url = \"https://h/secret\"\n"), std::string::npos);
  // The document is one line there, and no byte of it can end the quotes.
  const std::size_t data = plan.input.find("data-binary = \"") + 15;
  const std::string line = plan.input.substr(data, plan.input.find('\n', data) - data);
  std::string document;
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] == '\\') ++i;
    document += line[i];
  }
  EXPECT_EQ(document, encode(full()));
}

TEST(Notification, NothingOfAJobEndsAHeaderOfItsMail) {
  Notification told = full();
  told.text = "job of\r\nBcc: everybody\nand \xc3\xa9";
  const NotifyPlan plan = plan_for(told, {NotifyWay::kMail, ""}, 1000, "/x/sendmail");
  EXPECT_EQ(plan.argv, (std::vector<std::string>{"/x/sendmail", "-i", "--", "alice"}));
  const std::string headers = plan.input.substr(0, plan.input.find("\n\n"));
  EXPECT_EQ(headers.find("\nBcc"), std::string::npos) << headers;
  EXPECT_NE(headers.find("X-Mete-Id: 81-0"), std::string::npos);
}

TEST(Notification, ACommandGetsTheDocument) {
  const NotifyPlan plan = plan_for(full(), {NotifyWay::kCommand, "cat"}, 1000, "");
  EXPECT_EQ(plan.argv.back(), "cat");
  EXPECT_EQ(plan.input, encode(full()) + "\n");
}

}  // namespace
}  // namespace mete::wire
