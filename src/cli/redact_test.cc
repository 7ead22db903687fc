// SPDX-License-Identifier: Apache-2.0
// What is taken out of texts and documents, and that the rest stays readable.
#include "cli/redact.h"

#include <gtest/gtest.h>

namespace mete::cli {
namespace {

TEST(Redactor, OneThingHasOneWord) {
  Redactor redactor;
  EXPECT_EQ(redactor.word_for("user", "alice"), "user-1");
  EXPECT_EQ(redactor.word_for("user", "bob"), "user-2");
  EXPECT_EQ(redactor.word_for("name", "alice"), "user-1") << "whatever it is called elsewhere";
  EXPECT_EQ(redactor.word_for("name", ""), "");
}

TEST(Redactor, WhatWasLearnedIsTakenOutOfTexts) {
  Redactor redactor;
  redactor.learn("user", "alice");
  redactor.learn("name", "alice-trains");
  redactor.learn("name", "x1");
  EXPECT_EQ(redactor.text("job 12 of alice ended"), "job 12 of user-1 ended");
  EXPECT_EQ(redactor.text("(alice-trains)"), "(name-1)") << "the longest first";
  EXPECT_EQ(redactor.text("malice"), "malice") << "a short one only where it is a word";
  EXPECT_EQ(redactor.text("x1"), "x1");
  redactor.learn("value", "hunter22secret");
  EXPECT_EQ(redactor.text("--key=zhunter22secretz").find("hunter22"), std::string::npos);
}

TEST(Redactor, WhatLooksLikeAPathAnAddressOrATokenIsTakenOut) {
  for (const char* secret :
       {"/home/carol/data.bin", "~/thesis", "../plans/x", "https://hooks.example/T0K3N",
        "a@b.example", "10.1.2.3", "sk-proj-9f8e7d6c5b4a3210",
        "GPU-8a1b2c3d-0000-1111-2222-333344445555", "data/plans.csv"}) {
    Redactor redactor;
    const std::string text = redactor.text("open " + std::string(secret) + ": no such file");
    EXPECT_EQ(text.find(secret), std::string::npos) << text;
    EXPECT_TRUE(text.starts_with("open ")) << text;
    EXPECT_TRUE(text.ends_with(": no such file")) << text;
  }
  Redactor redactor;
  EXPECT_EQ(redactor.text("there is no key 'project zebra'"), "there is no key 'text-1'");
  EXPECT_EQ(redactor.text("/home/a/c.toml:3:1: no"), "/path-1:3:1: no");
  EXPECT_EQ(redactor.text("TOKEN=/srv/x1"), "TOKEN=/path-2");
  EXPECT_EQ(redactor.text("/opt/one:/opt/two:9").find("opt"), std::string::npos);
}

TEST(Redactor, WhatIsOursStays) {
  const char* text =
      "2026-11-16T08:30:00.000Z the daemon's mover (process 412) keeps 16.0 GiB; driver "
      "580.159.04, "
      "/usr/lib/x86_64-linux-gnu/libcuda.so.1 and /proc/driver/nvidia, 3 of 4 cards, 50%";
  EXPECT_EQ(Redactor().text(text), text);
}

TEST(Redactor, ADocumentKeepsOnlyWhatIsKnownToBeHarmless) {
  const wire::Json document = *wire::parse_json(
      R"({"schema":"mete.event/1","type":"job.submitted","job":"12","attempt":1,"data":{"spec":)"
      R"({"name":"zebra","command":["python","zebra.py","--token=s3cr3t"],"cwd":"/home/alice",)"
      R"("uid":1234,"user":"alice","labels":{"project":"zebra"},"request":{"gpu":"40%"},)"
      R"("something_new":"alice's"}},"why":"exec '/home/alice/zebra.py' failed for alice"})");
  Redactor redactor;
  redactor.learn(document);
  const std::string text = wire::write_json(redactor.document(document));
  for (const char* secret : {"zebra", "alice", "s3cr3t", "1234", "python", "project"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << " in " << text;
  for (const char* kept :
       {"job.submitted", "\"12\"", "40%", "attempt", "exec", "failed for user-1"})
    EXPECT_NE(text.find(kept), std::string::npos) << kept << " in " << text;
}

}  // namespace
}  // namespace mete::cli
