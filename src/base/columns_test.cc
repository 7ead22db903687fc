// SPDX-License-Identifier: Apache-2.0
#include "base/columns.h"

#include <gtest/gtest.h>

namespace mete::base {
namespace {

TEST(Columns, IdeographsAndEmojiTakeTwoAndMarksNone) {
  EXPECT_EQ(columns_of("train"), 5u);
  EXPECT_EQ(columns_of("äöü…"), 4u);
  EXPECT_EQ(columns_of("模型"), 4u);
  EXPECT_EQ(columns_of("한글"), 4u);
  EXPECT_EQ(columns_of("🚀"), 2u);
  EXPECT_EQ(columns_of("e\u0301"), 1u);
  EXPECT_EQ(columns_of("👩\u200d🔬"), 4u);
  EXPECT_EQ(columns_of("█▏⣿─"), 4u);
  EXPECT_EQ(columns_of("\xff\xfe"), 2u);
}

TEST(Columns, AGlyphHasItsMarks) {
  const Glyph glyph = first_glyph("e\u0301\u0302x");
  EXPECT_EQ(glyph.bytes, "e\u0301\u0302");
  EXPECT_EQ(glyph.columns, 1u);
  EXPECT_TRUE(first_glyph("").bytes.empty());
}

TEST(Columns, CutsAtCharactersAndSaysSo) {
  EXPECT_EQ(fit_columns("train", 5), "train");
  EXPECT_EQ(fit_columns("training", 5), "trai…");
  EXPECT_EQ(fit_columns("模型训练", 5), "模型…");
  EXPECT_EQ(fit_columns("模型训练", 6), "模型…") << "half a character is none";
  EXPECT_EQ(fit_columns("模型训练", 8), "模型训练");
  EXPECT_EQ(fit_columns("e\u0301e\u0301e\u0301", 2), "e\u0301…");
  EXPECT_EQ(fit_columns("x", 0), "");
  EXPECT_EQ(fit_columns("🚀", 1), "…");
}

}  // namespace
}  // namespace mete::base
