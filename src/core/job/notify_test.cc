// SPDX-License-Identifier: Apache-2.0
#include "core/job/notify.h"

#include <gtest/gtest.h>

namespace mete::core {
namespace {

TEST(Notify, TargetsAreReadAndWrittenTheSame) {
  for (const char* text : {"mail", "mail:alice@example.org", "webhook:https://h.example/x?y=1",
                           "webhook:http://127.0.0.1:8080", "cmd:notify-send 'it is over'"}) {
    const Result<NotifyTarget> target = parse_notify(text);
    ASSERT_TRUE(target) << text;
    EXPECT_EQ(to_string(*target), text);
  }
}

TEST(Notify, WhatIsNoTargetIsRefused) {
  for (const char* text :
       {"", "fax:12", "mail:", "mail:-oX", "mail:a b", "mail:a,b", "webhook:", "webhook:ftp://x/",
        "webhook:https://", "webhook:https:///x", "webhook:file:///etc/passwd",
        "webhook:https://h/\"x", "webhook:https://h/a b", "cmd:", "cmd:  ", "cmd:a\nb"})
    EXPECT_FALSE(parse_notify(text)) << text;
  EXPECT_FALSE(parse_notify("cmd:" + std::string(kMaxNotifyBytes, 'x')));
}

TEST(Notify, SecretsAreNotShown) {
  const auto shown = [](const char* text) { return redacted(*parse_notify(text)); };
  EXPECT_EQ(shown("webhook:https://user:pw@h.example:8443/T0/B1/secret?token=x"),
            "webhook:https://h.example:8443/…");
  EXPECT_EQ(shown("webhook:https://h.example"), "webhook:https://h.example");
  EXPECT_EQ(shown("webhook:https://h.example/a@b"), "webhook:https://h.example/…");
  EXPECT_EQ(shown("webhook:https://h.example?token=a@b"), "webhook:https://h.example/…");
  EXPECT_EQ(shown("cmd:curl -H 'Authorization: x'"), "cmd:curl …");
  EXPECT_EQ(shown("cmd:beep"), "cmd:beep");
  EXPECT_EQ(shown("mail:a@b.example"), "mail:a@b.example");
  EXPECT_EQ(parse_notify("webhook:ftp://token@h/").error().message.find("token"),
            std::string::npos);
}

TEST(Notify, WithoutAListOfWhatItIsTheEnds) {
  NotifySpec spec;
  EXPECT_TRUE(wants(spec, NotifyOn::kEnd));
  EXPECT_TRUE(wants(spec, NotifyOn::kFail));
  EXPECT_TRUE(wants(spec, NotifyOn::kOom));
  EXPECT_FALSE(wants(spec, NotifyOn::kStart));
  spec.on = *parse_notify_list("park,start,park");
  EXPECT_EQ(spec.on, (std::vector{NotifyOn::kStart, NotifyOn::kPark}));
  EXPECT_FALSE(wants(spec, NotifyOn::kEnd));
  EXPECT_FALSE(parse_notify_list("start,stop"));
  EXPECT_FALSE(parse_notify_list(""));
}

}  // namespace
}  // namespace mete::core
