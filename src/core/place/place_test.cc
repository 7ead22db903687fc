// SPDX-License-Identifier: Apache-2.0
// Placement on hand-made pools of a few cards: shares, whole cards, types, devices, processes,
// policies, and the wait or error where nothing fits. Requests are written as on the command line,
// and placements compared as text: index and bytes of each card.
#include "core/place/place.h"

#include <gtest/gtest.h>

#include "core/place/spare.h"
#include "wire/wait_text.h"

namespace mete::core {
namespace {

const Bytes kH200 = Bytes::from_mib(143771);
const Bytes kT4 = Bytes::from_mib(15360);

Bytes gib(std::uint64_t count) { return Bytes::from_gib(count); }

PoolCard card(std::uint32_t index, Bytes capacity = kH200, const char* type = "H200") {
  PoolCard made;
  made.card = {index, "GPU-" + std::to_string(index), type, capacity};
  return made;
}

Holder job(std::uint64_t id, Bytes bytes, bool whole = false) {
  return {{id}, "alice", "train", bytes, whole};
}

Pool h200s(std::uint32_t count) {
  Pool pool;
  for (std::uint32_t i = 0; i < count; ++i) pool.cards.push_back(card(i));
  return pool;
}

struct Words {
  const char* gpu = nullptr;
  std::vector<std::string> devices = {};
  const char* type = nullptr;
  std::uint32_t procs = 1;
  bool or_cpu = false;
  const char* where = nullptr;
};

Request request_of(const Words& words) {
  Request request;
  if (words.gpu != nullptr) request.gpu = *parse_gpu(words.gpu);
  request.devices = words.devices;
  if (words.type != nullptr) request.gpu_type = words.type;
  request.procs = words.procs;
  request.or_cpu = words.or_cpu;
  if (words.where != nullptr) request.where = *Query::parse(words.where);
  return request;
}

Decision decide(const Pool& pool, const Words& words, Policy policy = Policy::kFirstFit) {
  return place(pool, request_of(words), policy);
}

// "0:8G 1:whole 143770M", or the wait or error.
std::string placed(const Pool& pool, const Words& words, Policy policy = Policy::kFirstFit) {
  const Decision decision = decide(pool, words, policy);
  if (const auto* wait = std::get_if<Wait>(&decision)) return "wait: " + wire::wait_text(*wait);
  if (const auto* error = std::get_if<Error>(&decision)) return "never: " + error->message;
  std::string text;
  for (const GrantedCard& granted : std::get<Placement>(decision).cards) {
    EXPECT_EQ(granted.uuid, "GPU-" + std::to_string(granted.index));
    text += (text.empty() ? "" : " ") + std::to_string(granted.index) + ":" +
            (granted.whole ? "whole " : "") + to_exact_string(granted.bytes);
  }
  return text.empty() ? "no card" : text;
}

Wait waits(const Pool& pool, const Words& words) {
  const Decision decision = decide(pool, words);
  EXPECT_TRUE(std::holds_alternative<Wait>(decision)) << placed(pool, words);
  const auto* wait = std::get_if<Wait>(&decision);
  return wait == nullptr ? Wait{} : *wait;
}

Error never(const Pool& pool, const Words& words) {
  const Decision decision = decide(pool, words);
  EXPECT_TRUE(std::holds_alternative<Error>(decision)) << placed(pool, words);
  const auto* error = std::get_if<Error>(&decision);
  return error == nullptr ? Error{} : *error;
}

std::vector<JobId> jobs(std::initializer_list<std::uint64_t> ids) {
  std::vector<JobId> list;
  for (const std::uint64_t id : ids) list.push_back({id});
  return list;
}

TEST(Place, GivesWhatTheGrammarSays) {
  const Pool pool = h200s(3);
  EXPECT_EQ(placed(pool, {"0"}), "no card");
  EXPECT_EQ(placed(pool, {"1"}), "0:whole 143770M");
  EXPECT_EQ(placed(pool, {"2"}), "0:whole 143770M 1:whole 143770M");
  EXPECT_EQ(placed(pool, {"all"}), "0:whole 143770M 1:whole 143770M 2:whole 143770M");
  EXPECT_EQ(placed(pool, {"0.4"}), "0:57508M");
  EXPECT_EQ(placed(pool, {"40%"}), "0:57508M");
  EXPECT_EQ(placed(pool, {"8G"}), "0:8G");
  EXPECT_EQ(placed(pool, {"2x8G"}), "0:8G 1:8G");
  EXPECT_EQ(placed(pool, {"allx40%"}), "0:57508M 1:57508M 2:57508M");
  EXPECT_EQ(placed(pool, {"100%"}), "0:143770M");
}

TEST(Place, DevicesAreSeenInTheOrderGiven) {
  EXPECT_EQ(placed(h200s(4), {nullptr, {"3", "2"}}), "3:whole 143770M 2:whole 143770M");
  EXPECT_EQ(placed(h200s(4), {"8G", {"3", "0"}}), "3:8G 0:8G");
  EXPECT_EQ(placed(h200s(4), {"8G", {"3", "0"}}, Policy::kSpread), "3:8G 0:8G");
}

TEST(Place, TypeSelectsCards) {
  Pool pool = h200s(2);
  pool.cards.push_back(card(2, kT4, "T4"));
  EXPECT_EQ(placed(pool, {"8G", {}, "t4"}), "2:8G");
  EXPECT_EQ(never(pool, {"8G", {}, "A100"}).message, "there is no card of type 'A100' here");
}

TEST(Place, RefusesWhatCanNeverFitAsCapDoes) {
  const Error error = never(h200s(2), {"200G"});
  EXPECT_EQ(error.code, ErrorCode::kInfeasible);
  EXPECT_EQ(error.message, "--gpu 200G can never fit here");
  EXPECT_EQ(error.evidence, "the largest card is card 0 (H200, 140.4 GiB)");
  EXPECT_EQ(error.hint, "--gpu 140.4G would fit");
  EXPECT_EQ(never(Pool{}, {"8G"}).message, "this machine has no usable GPU");
  EXPECT_EQ(never(h200s(2), {"8G", {"7"}}).code, ErrorCode::kInfeasible);
  EXPECT_EQ(never(h200s(2), {"2", {"0"}}).code, ErrorCode::kInvalid);
}

TEST(Place, GrowingSharesNeedTheirLeast) {
  Request request;
  request.gpu = *parse_gpu("8G..20G");
  const Decision decision = place(h200s(1), request, Policy::kBestFit);
  const auto* placement = std::get_if<Placement>(&decision);
  ASSERT_NE(placement, nullptr);
  EXPECT_EQ(placement->cards[0].bytes, gib(8));
  EXPECT_EQ(placement->cards[0].least, gib(8));
  EXPECT_EQ(placement->cards[0].most, gib(20));
  request.procs = 2;
  EXPECT_EQ(can_ever(h200s(1), request).error().code, ErrorCode::kInvalid);
}

TEST(Place, AMoverTakesItsPartBesideTheFirstThatCanBeParked) {
  Pool pool = h200s(1);
  pool.cards[0].mover = gib(1);
  Request request;
  request.gpu = *parse_gpu("100%");
  EXPECT_EQ(place_now(pool, request, Policy::kBestFit)->cards[0].bytes, kH200.round_down(kGranule));
  request.parkable = true;
  EXPECT_EQ(place_now(pool, request, Policy::kBestFit)->cards[0].bytes,
            (kH200 - gib(1)).round_down(kGranule));
  // The mover is counted once, whether it runs yet or not.
  Holder first = job(1, gib(40));
  first.parkable = true;
  pool.cards[0].holders = {first};
  EXPECT_EQ(pool.cards[0].grantable(), kH200 - gib(41));
  pool.cards[0].mover_runs = true;
  EXPECT_EQ(pool.cards[0].grantable(), kH200 - gib(41));
  // A card with only a mover is as free as one without.
  pool.cards[0].holders.clear();
  request.parkable = false;
  request.gpu = whole_cards(1);
  EXPECT_EQ(place_now(pool, request, Policy::kBestFit)->cards[0].bytes,
            (kH200 - gib(1)).round_down(kGranule));
}

TEST(Place, AWholeCardMayBeGivenBesideAParkedJob) {
  Pool pool = h200s(1);
  Holder parked = job(1, Bytes::from_mib(518));
  parked.parked = true;
  pool.cards[0].holders = {parked};
  Request request;
  request.gpu = whole_cards(1);
  EXPECT_EQ(place_now(pool, request, Policy::kBestFit)->cards[0].bytes,
            (kH200 - Bytes::from_mib(518)).round_down(kGranule));
  EXPECT_TRUE(may_return(pool, JobId{1}, {{0, pool.cards[0].card.uuid, gib(40), false}}));
  // Memory of a job beyond its grant is not in the job's own way.
  pool.cards[0].foreign = {{"job 1 of alice", kH200 - gib(2), JobId{1}}};
  EXPECT_TRUE(may_return(pool, JobId{1}, {{0, pool.cards[0].card.uuid, gib(40), false}}));
  pool.cards[0].foreign.clear();
  pool.cards[0].holders.push_back({JobId{2}, "bob", "", kH200 - gib(2), true});
  EXPECT_FALSE(may_return(pool, JobId{1}, {{0, pool.cards[0].card.uuid, gib(40), false}}));
}

TEST(Place, CountsGrantsClaimsAndForeignMemory) {
  Pool pool = h200s(1);
  pool.cards[0].holders = {job(1, gib(40))};
  pool.cards[0].claimed = {{"bob's mete", gib(40)}};
  pool.cards[0].foreign = {{"process 412 of carol", gib(40)}};
  EXPECT_EQ(pool.cards[0].grantable(), kH200 - gib(120));
  EXPECT_EQ(placed(pool, {"20G"}), "0:20G");
  EXPECT_EQ(placed(pool, {"21G"}),
            "wait: 21 GiB on one card; card 0: 20.4 GiB free of the 21 GiB needed, alice's job 1 "
            "(train) holds 40 GiB, bob's mete holds 40 GiB, process 412 of carol holds 40 GiB");
}

TEST(Place, AddsUpAllWhoAreOnACard) {
  Pool pool = h200s(1);
  pool.cards[0].holders = {job(1, gib(10)), job(2, gib(11))};
  pool.cards[0].claimed = {{"bob's mete", gib(12)}, {"dave's mete", gib(13)}};
  pool.cards[0].foreign = {{"process 412 of carol", gib(14)}, {"process 9 of root", gib(15)}};
  EXPECT_EQ(pool.cards[0].grantable(), kH200 - gib(75));
}

TEST(Place, OverfullCardsHaveNothingToGive) {
  Pool pool = h200s(1);
  pool.cards[0].holders = {job(1, gib(100))};
  pool.cards[0].foreign = {{"process 412 of carol", gib(100)}};
  EXPECT_EQ(pool.cards[0].grantable(), Bytes());
  pool.cards[0].foreign.push_back({"a wrong reading", Bytes::from_bytes(UINT64_MAX)});
  EXPECT_EQ(pool.cards[0].grantable(), Bytes());
  EXPECT_TRUE(waits(pool, {"8G"}).holders.empty());
}

TEST(Place, AWholeCardToleratesADisplayServer) {
  Pool pool = h200s(1);
  pool.cards[0].foreign = {{"process 9 of root", Bytes::from_mib(301)}};
  EXPECT_EQ(placed(pool, {"1"}), "0:whole 143470M");
  // The allowance is 4492 MiB on an H200 and 480 MiB on a T4 (1/32), but never below 512 MiB.
  pool.cards[0].foreign = {{"process 9 of root", Bytes::from_mib(4492)}};
  EXPECT_EQ(placed(pool, {"1"}), "0:whole 139278M");
  pool.cards[0].foreign = {{"process 9 of root", Bytes::from_mib(4493)}};
  EXPECT_EQ(placed(pool, {"1"}),
            "wait: one card for itself; card 0: not free, process 9 of root holds 4.38 GiB");
  pool.cards[0] = card(0, kT4, "T4");
  pool.cards[0].foreign = {{"process 9 of root", Bytes::from_mib(512)}};
  EXPECT_EQ(placed(pool, {"1"}), "0:whole 14848M");
  pool.cards[0].foreign = {{"process 9 of root", Bytes::from_bytes((512 << 20) + 1)}};
  EXPECT_TRUE(waits(pool, {"1"}).holders.empty());
}

TEST(Place, AWholeCardWaitsForEveryGrantAndClaim) {
  Pool pool = h200s(2);
  pool.cards[0].holders = {job(12, Bytes::from_mib(2))};
  pool.cards[1].claimed = {{"bob's mete", Bytes::from_mib(2)}};
  EXPECT_EQ(wire::wait_text(waits(pool, {"1"})),
            "one card for itself; card 0: not free, alice's job 12 (train) holds 2 MiB; card 1: "
            "not free, bob's mete holds 2 MiB");
  EXPECT_EQ(waits(pool, {"1"}).holders, jobs({12}));
}

TEST(Place, ACardHeldWholeGivesNothing) {
  Pool pool = h200s(1);
  pool.cards[0].holders = {job(14, gib(1), true)};
  EXPECT_EQ(pool.cards[0].grantable(), Bytes());
  EXPECT_EQ(wire::wait_text(waits(pool, {"8G"})),
            "8 GiB on one card; card 0: held whole by alice's job 14 (train)");
  EXPECT_EQ(waits(pool, {"8G"}).holders, jobs({14}));
}

TEST(Place, HundredPercentIsSharedButNeedsAllOfIt) {
  Pool pool = h200s(1);
  pool.cards[0].foreign = {{"process 9 of root", Bytes::from_mib(1)}};
  EXPECT_EQ(placed(pool, {"100%"}), "0:143770M");  // without the odd MiB of the card
  pool.cards[0].foreign = {{"process 9 of root", Bytes::from_mib(2)}};
  EXPECT_EQ(wire::wait_text(waits(pool, {"100%"})),
            "100% of one card; card 0: 140.39 GiB free of the 140.4 GiB needed, process 9 of root "
            "holds 2 MiB");
}

TEST(Place, WaitsForLostDrainedAndUnreadCards) {
  Pool pool = h200s(3);
  pool.cards[0].lost = true;
  pool.cards[1].drained = true;
  pool.cards[2].stale = true;
  for (const PoolCard& each : pool.cards) EXPECT_EQ(each.grantable(), Bytes());
  const Wait wait = waits(pool, {"2x8G"});
  EXPECT_EQ(wait.reason, Reason::kResources);
  EXPECT_EQ(wire::wait_text(wait),
            "8 GiB on each of 2 cards; card 0: lost; card 1: drained; card 2: not read lately, so "
            "what others hold is not known");
  // This request waits for the card to be undrained, unless a job's end is enough.
  EXPECT_EQ(waits(pool, {"8G"}).reason, Reason::kDrained);
  pool.cards.push_back(card(3));
  pool.cards[3].holders = {job(1, gib(140))};
  EXPECT_EQ(waits(pool, {"8G"}).reason, Reason::kResources);
  EXPECT_EQ(waits(pool, {"2x8G"}).reason, Reason::kDrained);
}

TEST(Place, UnusableCardsAreLeftOut) {
  Pool pool = h200s(3);
  pool.cards[0].unusable = "split into MIG slices";
  EXPECT_EQ(pool.cards[0].grantable(), Bytes());
  EXPECT_EQ(placed(pool, {"8G"}), "1:8G");
  EXPECT_EQ(placed(pool, {"allx8G"}), "1:8G 2:8G");
  const Error too_many = never(pool, {"3"});
  EXPECT_EQ(too_many.code, ErrorCode::kInfeasible);
  EXPECT_EQ(too_many.evidence,
            "2 cards can be used; card 0: "
            "split into MIG slices");
  pool.cards[1].unusable = pool.cards[2].unusable = "compute mode is prohibited";
  const Error none = never(pool, {"8G"});
  EXPECT_EQ(none.code, ErrorCode::kInfeasible);
  EXPECT_EQ(none.message, "this machine has no usable GPU");
  EXPECT_EQ(none.evidence,
            "card 0: split into MIG slices; card 1: compute mode is prohibited; card 2: compute "
            "mode is prohibited");
}

TEST(Place, OrCpuRunsWithoutACardRatherThanWait) {
  Pool pool = h200s(1);
  EXPECT_EQ(placed(pool, {.gpu = "8G", .or_cpu = true}), "0:8G");
  pool.cards[0].holders = {job(1, gib(140))};
  EXPECT_EQ(placed(pool, {.gpu = "8G", .or_cpu = true}), "no card");
  EXPECT_EQ(placed(Pool{}, {.gpu = "8G", .or_cpu = true}), "no card") << "nor on a machine without";
  EXPECT_EQ(never(pool, {.gpu = "200G", .or_cpu = true}).code, ErrorCode::kInfeasible);
}

TEST(Place, OneProcessCardsHaveOneGrantAtATime) {
  Pool pool = h200s(2);
  pool.cards[0].one_process = pool.cards[1].one_process = true;
  EXPECT_EQ(placed(pool, {"8G"}), "0:8G");
  pool.cards[0].holders = {job(1, gib(8))};
  EXPECT_EQ(pool.cards[0].grantable(), Bytes());
  EXPECT_EQ(placed(pool, {"8G"}), "1:8G");
  pool.cards[1].foreign = {{"process 9 of root", Bytes::from_mib(300)}};
  EXPECT_EQ(placed(pool, {"8G"}),
            "1:8G");  // the driver does not count display servers
  pool.cards[1].foreign = {{"process 412 of bob", gib(5)}};
  EXPECT_EQ(wire::wait_text(waits(pool, {"8G"})),
            "8 GiB on one card; card 0: one process at a time may use it, alice's job 1 (train) "
            "holds 8 GiB; card 1: one process at a time may use it, process 412 of bob holds 5 "
            "GiB");
  EXPECT_EQ(waits(pool, {"8G"}).holders, jobs({1}));
}

TEST(Place, SeveralProcessesNeedACardThatAllowsThem) {
  Pool pool = h200s(2);
  pool.cards[0].one_process = true;
  EXPECT_EQ(placed(pool, {.gpu = "8G", .procs = 2}), "1:8G");
  EXPECT_EQ(placed(pool, {.gpu = "2x8G", .procs = 2}), "0:8G 1:8G");  // one on each card
  const Error error = never(pool, {.gpu = "2x8G", .procs = 4});
  EXPECT_EQ(error.code, ErrorCode::kInfeasible);
  EXPECT_EQ(error.evidence, "card 0 is in exclusive-process mode");
  EXPECT_EQ(error.hint, "--procs 2 would fit");
}

TEST(Place, PartsAreEvenAndNeverMoreThanTheShare) {
  EXPECT_EQ(part_of(gib(8), 1, 1), gib(8));
  EXPECT_EQ(part_of(gib(8), 3, 1), Bytes::from_mib(2730));
  EXPECT_EQ(part_of(gib(8), 4, 2), gib(4));  // two processes on each of two cards
  EXPECT_EQ(part_of(gib(8), 1, 2), gib(8));  // one process sees both cards
}

TEST(Place, ProcessesAreDividedEvenlyBetweenCards) {
  EXPECT_EQ(placed(h200s(2), {.gpu = "2", .procs = 2}), "0:whole 143770M 1:whole 143770M");
  EXPECT_EQ(placed(h200s(2), {.gpu = "2x8G", .procs = 6}), "0:8G 1:8G");
  const Error error = never(h200s(2), {.gpu = "2x8G", .procs = 3});
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_EQ(error.message, "--procs 3 cannot be divided between 2 cards");
  EXPECT_EQ(error.hint, "--procs 2 would fit");
  EXPECT_EQ(never(h200s(4), {.gpu = "4x8G", .procs = 2}).hint, "--procs 4 would fit");
  EXPECT_EQ(never(h200s(2), {.gpu = "all", .procs = 3}).code, ErrorCode::kInfeasible);
  EXPECT_EQ(never(h200s(2), {.gpu = "8G", .procs = 0}).code, ErrorCode::kInvalid);
}

TEST(Place, EachPartHoldsAContext) {
  Pool pool = h200s(1);
  pool.cards[0].context = Bytes::from_mib(580);
  EXPECT_EQ(placed(pool, {.gpu = "5152M", .procs = 8}), "0:5152M");  // 8 x (580 + 64)
  const Error error = never(pool, {.gpu = "5150M", .procs = 8});
  EXPECT_EQ(error.code, ErrorCode::kInfeasible);
  EXPECT_EQ(error.message, "--gpu 5150M is too little for --procs 8");
  EXPECT_EQ(error.evidence,
            "each process would have 642 MiB of card 0, where a context takes 580 MiB and at least "
            "64 MiB more are of use");
  EXPECT_EQ(error.hint, "--gpu 5152M would fit");
  EXPECT_EQ(never(pool, {.gpu = "1", .procs = 1000}).hint, "--procs 223 would fit");
  // A single process may never make a context: it is not refused.
  EXPECT_EQ(placed(pool, {.gpu = "64M"}), "0:64M");
  pool.cards[0].context = Bytes();
  EXPECT_EQ(placed(pool, {.gpu = "64M", .procs = 8}), "0:64M");
  EXPECT_EQ(never(pool, {.gpu = "64M", .procs = 64}).hint, "--gpu 128M would fit");
}

TEST(Place, PartsAreMeasuredOnEachCard) {
  Pool pool;
  pool.cards = {card(0, kT4, "T4"), card(1)};
  pool.cards[0].context = Bytes::from_mib(110);
  pool.cards[1].context = Bytes::from_mib(580);
  EXPECT_EQ(placed(pool, {.gpu = "10%", .procs = 16}),
            "1:14376M");  // 1536 MiB of the T4 are not enough
  EXPECT_EQ(never(pool, {.gpu = "2x1G", .procs = 4}).hint, "--gpu 2x1288M would fit");
  EXPECT_EQ(placed(pool, {.gpu = "2x1288M", .procs = 4}), "0:1288M 1:1288M");
}

TEST(Place, PoliciesPreferWhatTheirNamesSay) {
  Pool pool = h200s(3);
  pool.cards[0].holders = {job(1, gib(20))};
  pool.cards[1].holders = {job(2, gib(60))};
  EXPECT_EQ(placed(pool, {"8G"}, Policy::kFirstFit), "0:8G");
  EXPECT_EQ(placed(pool, {"8G"}, Policy::kBestFit), "1:8G");
  EXPECT_EQ(placed(pool, {"8G"}, Policy::kSpread), "2:8G");
  EXPECT_EQ(placed(pool, {"2x8G"}, Policy::kBestFit), "0:8G 1:8G");
  EXPECT_EQ(placed(pool, {"2x8G"}, Policy::kSpread), "0:8G 2:8G");
  EXPECT_EQ(placed(pool, {"100G"}, Policy::kBestFit), "0:100G");
  for (const Policy policy : {Policy::kFirstFit, Policy::kBestFit, Policy::kSpread})
    EXPECT_EQ(placed(h200s(3), {"8G"}, policy), "0:8G");  // a tie
}

TEST(Place, WholeCardsAreSmallForBestFitAndLargeForSpread) {
  Pool pool;
  pool.cards = {card(0), card(1, kT4, "T4"), card(2), card(3, kT4, "T4")};
  EXPECT_EQ(placed(pool, {"1"}, Policy::kFirstFit), "0:whole 143770M");
  EXPECT_EQ(placed(pool, {"1"}, Policy::kBestFit), "1:whole 15G");
  EXPECT_EQ(placed(pool, {"2"}, Policy::kBestFit), "1:whole 15G 3:whole 15G");
  EXPECT_EQ(placed(pool, {"2"}, Policy::kSpread), "0:whole 143770M 2:whole 143770M");
}

TEST(Place, PoliciesHaveNames) {
  for (const Policy policy : {Policy::kFirstFit, Policy::kBestFit, Policy::kSpread})
    EXPECT_EQ(*parse_policy(to_string(policy)), policy);
  const Result<Policy> wrong = parse_policy("best_fit");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(wrong.error().hint, "write best-fit");
}

TEST(Place, NamesFourCardsAndThreeHolders) {
  Pool pool = h200s(7);
  for (PoolCard& each : pool.cards) each.drained = true;
  EXPECT_EQ(wire::wait_text(waits(pool, {"1"})),
            "one card for itself; card 0: drained; card 1: drained; card 2: drained; card 3: "
            "drained; and 3 more");
  pool = h200s(1);
  for (std::uint64_t id = 1; id <= 5; ++id) pool.cards[0].holders.push_back(job(id, gib(26 + id)));
  EXPECT_EQ(wire::wait_text(waits(pool, {"8G"})),
            "8 GiB on one card; card 0: 0 bytes free of the 8 GiB needed, alice's job 5 (train) "
            "holds 31 GiB, alice's job 4 (train) holds 30 GiB, alice's job 3 (train) holds 29 GiB, "
            "and 2 others");
}

TEST(Place, SaysHowManyCardsHaveRoom) {
  Pool pool = h200s(2);
  pool.cards[1].holders = {job(1, gib(140))};
  EXPECT_EQ(wire::wait_text(waits(pool, {"2x40%"})),
            "40% of each of 2 cards, 1 has room now; card 1: 411 MiB free of the 56.16 GiB "
            "needed, alice's job 1 (train) holds 140 GiB");
  EXPECT_EQ(wire::wait_text(waits(pool, {"8G", {"1"}})),
            "8 GiB on card 1; card 1: 411 MiB free of the 8 GiB needed, alice's job 1 (train) "
            "holds 140 GiB");
}

TEST(Place, ANameCannotMoveTheReadersCursor) {
  Pool pool = h200s(1);
  pool.cards[0].holders = {{{1}, "a\nb", "x\x1b[2J", gib(140), false}};
  EXPECT_EQ(wire::wait_text(waits(pool, {"8G"})).find_first_of("\n\x1b"), std::string::npos);
}

TEST(Place, HoldersThatWouldBeEnoughComeFirst) {
  Pool pool = h200s(2);
  pool.cards[0].holders = {job(1, gib(60)), job(2, gib(40)), job(3, gib(40))};
  pool.cards[1].holders = {job(4, gib(100)), job(5, gib(30)), job(6, gib(8))};
  // 10 GiB: job 6 is the smallest job that alone is enough on either card.
  EXPECT_EQ(waits(pool, {"10G"}).holders, jobs({6, 2, 4, 5, 1, 3}));
  // 90 GiB: two jobs on card 0, job 4 alone on card 1.
  EXPECT_EQ(waits(pool, {"90G"}).holders.front(), JobId{4});
  // 130 GiB: all three jobs on card 0, the two larger ones on card 1.
  EXPECT_EQ(waits(pool, {"130G"}).holders, jobs({4, 5, 1, 2, 3, 6}));
}

TEST(Place, OfEqualHoldersTheFirstNumberComesFirst) {
  Pool pool = h200s(1);
  pool.cards[0].holders = {job(9, gib(40)), job(7, gib(40)), job(8, gib(40))};
  EXPECT_EQ(waits(pool, {"30G"}).holders, jobs({7, 8, 9}));
  EXPECT_EQ(waits(pool, {"70G"}).holders, jobs({7, 8, 9}));
}

TEST(Place, NoJobsEndHelpsWhereOthersAreInTheWay) {
  Pool pool = h200s(2);
  pool.cards[0].holders = {job(1, gib(60))};
  pool.cards[0].foreign = {{"process 412 of bob", gib(60)}};
  pool.cards[1].holders = {job(2, gib(60))};
  pool.cards[1].drained = true;
  EXPECT_TRUE(waits(pool, {"90G"}).holders.empty());
  EXPECT_EQ(waits(pool, {"70G"}).holders, jobs({1}));
  EXPECT_TRUE(waits(pool, {"1"}).holders.empty());
}

TEST(Place, AddingAGrantTakesItAway) {
  Pool pool = h200s(2);
  const Decision decision = decide(pool, {"2x8G"});
  add_grant(pool, {{7}, "carol", "serve", Bytes(), false}, std::get<Placement>(decision).cards);
  EXPECT_EQ(pool.cards[1].holders, (std::vector<Holder>{{{7}, "carol", "serve", gib(8), false}}));
  EXPECT_EQ(pool.cards[0].grantable(), kH200 - gib(8));
  add_grant(pool, job(8, Bytes()), {{0, "GPU-gone", gib(8), false}});
  EXPECT_EQ(pool.cards[0].grantable(), kH200 - gib(8));
  EXPECT_EQ(placed(pool, {"1"}).substr(0, 5), "wait:");
}

TEST(Spare, RefusesWhatIsMoreThanAnyCardHas) {
  Pool pool = h200s(2);
  pool.cards[0].holders = {job(1, kH200 - gib(8))};
  pool.cards[1].holders = {job(2, kH200 - gib(4))};
  const auto may_have = [&](const char* gpu) {
    Request request;
    request.gpu = *parse_gpu(gpu);
    return Spare(pool).may_have(request);
  };
  EXPECT_TRUE(may_have("8G"));
  EXPECT_FALSE(may_have("9G"));
  EXPECT_TRUE(may_have("2x4G"));
  EXPECT_FALSE(may_have("2x5G"));
  EXPECT_FALSE(may_have("50%"));
  EXPECT_FALSE(may_have("1"));
  EXPECT_TRUE(may_have("0"));
}

Pool of_two_types() {
  Pool pool{{card(0), card(1, kT4, "T4"), card(2, kT4, "T4")}};
  pool.cards[1].card.total = gib(16);
  pool.cards[2].card.total = gib(16);
  return pool;
}

TEST(Where, LeavesTheCardsOfWhichItIsTrue) {
  const Pool pool = of_two_types();
  EXPECT_EQ(placed(pool, {.gpu = "8G", .where = "attribute:gpu.type == T4"}), "1:8G");
  EXPECT_EQ(placed(pool, {.gpu = "8G", .where = "not(attribute:gpu.type == H200)"}), "1:8G");
  EXPECT_EQ(placed(pool, {.gpu = "8G", .where = "attribute:gpu.memory > 16G"}), "0:8G");
  EXPECT_EQ(placed(pool, {.gpu = "8G", .where = "attribute:gpu.memory == 16G"}), "1:8G")
      << "all that is built in, not what can be granted";
  EXPECT_EQ(placed(pool, {.gpu = "allx8G", .where = "attribute:gpu.type == T4"}), "1:8G 2:8G");
  EXPECT_EQ(placed(pool, {.gpu = "8G", .where = "attribute:gpu.count == 3"}), "0:8G");
  EXPECT_EQ(placed(pool, {.gpu = "8G", .devices = {"2"}, .where = "attribute:gpu.type == T4"}),
            "2:8G");
}

TEST(Where, IsRefusedWhenItCanNeverBeTrue) {
  const Pool pool = of_two_types();
  for (const char* where :
       {"attribute:gpu.type == A100", "attribute:gpu.count > 3", "attribute:stack == prod",
        "attribute:gpu.free >= 200G", "attribute:gpu.type == T4 and attribute:gpu.memory > 100G",
        "not(attribute:gpu.free < 200G)", "runningTasksCount < 0"}) {
    const Decision decision = decide(pool, {.gpu = "8G", .where = where});
    ASSERT_TRUE(std::holds_alternative<Error>(decision)) << where;
    EXPECT_EQ(std::get<Error>(decision).code, ErrorCode::kInfeasible);
    EXPECT_NE(std::get<Error>(decision).evidence.find(
                  "gpu.count 3; 1 card of gpu.type H200 and gpu.memory 140.4 GiB; 2 cards of "
                  "gpu.type T4 and gpu.memory 16 GiB"),
              std::string::npos)
        << std::get<Error>(decision).evidence;
    EXPECT_FALSE(can_ever(pool, request_of({.gpu = "8G", .where = where})).ok());
  }
  const Words named{.gpu = "8G", .devices = {"0"}, .where = "attribute:gpu.type == T4"};
  EXPECT_EQ(placed(pool, named),
            "never: --devices names card 0, of which --where 'attribute:gpu.type == T4' is "
            "never true");
  EXPECT_EQ(placed(pool, {.gpu = "3x8G", .where = "attribute:gpu.type == T4"}),
            "never: --gpu 3x8G (3 cards) can never fit here");
}

TEST(Where, IsWaitedForWhenItIsNotTrueNow) {
  Pool pool = of_two_types();
  pool.cards[0].holders = {job(7, gib(100))};
  const Words words{.gpu = "8G", .where = "attribute:gpu.free >= 60G"};
  EXPECT_TRUE(can_ever(pool, request_of(words)).ok());
  const Wait wait = waits(pool, words);
  EXPECT_EQ(wire::wait_text(wait),
            "8 GiB on one card; card 0: --where is not true of it now, with 40.4 GiB free, alice's "
            "job 7 (train) holds 100 GiB");
  EXPECT_EQ(wait.holders, std::vector{JobId{7}});
  pool.cards[0].holders = {job(7, gib(80))};
  EXPECT_EQ(placed(pool, words), "0:8G");
  const Words beside{.gpu = "8G", .where = "runningTasksCount > 1"};
  EXPECT_TRUE(std::holds_alternative<Wait>(decide(pool, beside)));
  pool.cards[1].holders = {job(8, gib(1))};
  EXPECT_EQ(placed(pool, beside), "0:8G");
}

TEST(Where, IsAskedOfTheMachineByThoseWithoutAGpu) {
  const Pool pool = of_two_types();
  EXPECT_EQ(placed(pool, {.gpu = "0", .where = "attribute:gpu.type == T4"}), "no card");
  EXPECT_EQ(placed(pool, {.gpu = "0", .where = "attribute:gpu.type == L4"}),
            "never: --where 'attribute:gpu.type == L4' is never true here");
  EXPECT_EQ(placed(pool, {.gpu = "0", .where = "runningTasksCount == 2"}),
            "wait: this machine to be one of which --where is true");
  EXPECT_EQ(placed(Pool{}, {.gpu = "0", .where = "attribute:gpu.count == 0"}), "no card");
  EXPECT_EQ(placed(Pool{}, {.gpu = "8G", .or_cpu = true, .where = "attribute:gpu.count > 0"}),
            "no card");
}

}  // namespace
}  // namespace mete::core
