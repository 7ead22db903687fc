// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace mete {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error::invalid("odd").with_evidence("7").with_hint("try 8");
  return number / 2;
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half(8), 4);
  const Result<int> bad = half(7);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error(), (Error{ErrorCode::kInvalid, "odd", "7", "try 8"}));
}

TEST(Result, CarriesWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> owner = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(owner);
  EXPECT_EQ(*taken, 3);
}

TEST(Result, OfNothingIsSuccessUnlessAnErrorIsGiven) {
  const Result<void> good;
  EXPECT_TRUE(good);
  const Result<void> bad = Error::io("disk").within("save");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "save: disk");
}

TEST(Result, AsksForWhatItDoesNotHoldOnlyByMistake) {
  EXPECT_DEATH((void)half(7).value(), "impossible");
  EXPECT_DEATH((void)half(8).error(), "impossible");
}

TEST(Error, FromErrnoKeepsTheSystemsWordsAndChoosesTheCode) {
  EXPECT_EQ(Error::from_errno("open x", ENOENT).message, "open x: No such file or directory");
  EXPECT_EQ(Error::from_errno("open x", ENOENT).code, ErrorCode::kNotFound);
  EXPECT_EQ(Error::from_errno("open x", EACCES).code, ErrorCode::kDenied);
  EXPECT_EQ(Error::from_errno("open x", EBUSY).code, ErrorCode::kBusy);
  for (const int full : {ENOSPC, EDQUOT})
    EXPECT_EQ(Error::from_errno("x", full).code, ErrorCode::kExhausted) << full;
  for (const int short_of : {EMFILE, ENFILE, ENOMEM, EAGAIN})
    EXPECT_EQ(Error::from_errno("open x", short_of).code, ErrorCode::kBusy) << "not now";
  EXPECT_EQ(Error::from_errno("open x", EIO).code, ErrorCode::kIo);
}

TEST(Error, CodesAreNamedAsInTheJsonDocuments) {
  EXPECT_EQ(to_string(ErrorCode::kNotFound), "not_found");
  EXPECT_EQ(to_string(ErrorCode::kInfeasible), "infeasible");
}

}  // namespace
}  // namespace mete
