// SPDX-License-Identifier: Apache-2.0
#include "wire/list.h"

#include <gtest/gtest.h>

#include "wire/values.h"

namespace mete::wire {

struct Wheel {
  std::uint32_t spokes = 0;
  bool operator==(const Wheel&) const = default;
};
struct Cart {
  std::string name;
  std::uint32_t seats = 2;
  bool open = false;
  std::optional<int> load;
  std::string path;
  std::optional<core::Outcome> end;
  std::vector<Wheel> wheels;
  std::optional<Wheel> spare;
  std::map<std::string, Wheel> others;
  bool operator==(const Cart&) const = default;
};

void fields_of(auto& list, Is<Wheel> auto& wheel) {
  list.must("spokes", wheel.spokes);
  list.check("spokes", wheel.spokes <= 64, "at most 64");
}
void fields_of(auto& list, Is<Cart> auto& cart) {
  list.schema("test.cart/1");
  list.must("name", cart.name);
  list.opt("seats", cart.seats, 2);
  list.put("open", cart.open);
  list.opt("load", cart.load);
  list.opt("path", exact(cart.path));
  list.opt("end", known(cart.end));
  list.tell("colour", std::string_view("red"));
  list.opt("wheels", each("the wheel", cart.wheels));
  list.opt("spare", object("the spare wheel", cart.spare));
  list.put("others", entries("the other wheel", cart.others, [](auto& one, auto& key, auto& wheel) {
             one.must("key", key);
             fields_of(one, wheel);
           }));
}

namespace {

std::string error_of(std::string_view text, Unknown unknown = Unknown::kIgnored) {
  const Result<Cart> cart = decode<Cart>(text, "the cart", unknown);
  return cart ? "" : cart.error().message;
}

TEST(List, WritesInItsOrderAndLeavesOutWhatIsAsItWouldBeAnyway) {
  EXPECT_EQ(to_json(Cart{}),
            R"({"schema":"test.cart/1","name":"","open":false,"colour":"red","others":[]})");
  EXPECT_EQ(
      to_json(Cart{"a", 3, true, 0, "caf\xe9", core::Outcome::kOk, {{7}}, Wheel{8}, {{"x", {9}}}}),
      R"({"schema":"test.cart/1","name":"a","seats":3,"open":true,"load":0,"path":{"hex":"636166e9"},)"
      R"("end":"ok","colour":"red","wheels":[{"spokes":7}],"spare":{"spokes":8},)"
      R"("others":[{"key":"x","spokes":9}]})");
}

TEST(List, ReadsWhatItWrites) {
  const Cart cart{"a", 3, true, -1, "caf\xe9", core::Outcome::kLost, {{7}}, Wheel{8}, {{"x", {9}}}};
  EXPECT_EQ(*decode<Cart>(to_json(cart), "the cart"), cart);
  EXPECT_EQ(*decode<Cart>(to_json(Cart{}), "the cart"), Cart{});
}

TEST(List, ReadingFailsByTheNameOfTheObjectAndTheField) {
  EXPECT_EQ(error_of("[]"), "the cart is not an object");
  EXPECT_EQ(error_of("{}"), "the cart: 'name' must be text");
  EXPECT_EQ(error_of(R"({"name":"a"})"), "");
  EXPECT_EQ(error_of(R"({"name":"a","wheels":[{"spokes":65}]})"),
            "the wheel: 'spokes' must be at most 64");
  EXPECT_EQ(error_of(R"({"name":"a","spare":null})"), "the spare wheel is not an object");
  EXPECT_EQ(error_of(R"({"name":"a","others":{}})"), "the cart: 'others' must be a list");
}

TEST(List, ANameOfANewerVersionReadsAsAbsent) {
  EXPECT_EQ(decode<Cart>(R"({"name":"a","end":"exploded"})", "the cart")->end, std::nullopt);
}

TEST(List, UnknownFieldsAreRefusedAtEveryDepthWhereTheyAre) {
  const char* inside = R"({"name":"a","wheels":[{"spokes":1,"rim":2}]})";
  EXPECT_EQ(error_of(inside), "");
  EXPECT_EQ(error_of(inside, Unknown::kRefused), "the wheel: unknown field 'rim'");
  EXPECT_EQ(error_of(R"({"name":"a","bell":1})", Unknown::kRefused),
            "the cart: unknown field 'bell'");
}

TEST(List, TheOutlineHasEveryField) {
  Outline cart;
  outline<Cart>(cart);
  EXPECT_EQ(cart.fields.size(), 11u);
  EXPECT_EQ(cart.fields["spare"].fields.size(), 1u);
  EXPECT_EQ(cart.fields["others"].fields.size(), 2u);
  EXPECT_TRUE(cart.fields["name"].fields.empty());
}

}  // namespace
}  // namespace mete::wire
