// SPDX-License-Identifier: Apache-2.0
// Readers of the log.
#include "serve/events.h"

#include "serve/test/service_world.h"
#include "wire/event.h"

namespace mete::serve {
namespace {

using core::JobId;

class EventsTest : public ServiceTest {
 protected:
  static wire::EventsDocument page(const ClientPtr& client) {
    Result<wire::EventsDocument> document = wire::decode_events(client->body);
    EXPECT_TRUE(document.ok()) << client->status << " " << client->body;
    return document ? *std::move(document) : wire::EventsDocument();
  }
  static std::size_t count(const ClientPtr& client) { return page(client).events.size(); }
};

TEST_F(EventsTest, APageSaysWhereTheNextBegins) {
  (void)running(alice(), "8G");
  const std::uint64_t last = engine_.state().last_seq();
  ASSERT_GE(last, 3u);
  const wire::EventsDocument first = page(get(alice(), "/v1/events?from=1&limit=2"));
  ASSERT_EQ(first.events.size(), 2u);
  EXPECT_EQ(first.next, 3u);
  EXPECT_EQ(page(get(alice(), "/v1/events?from=3")).events.front().seq, 3u);
  EXPECT_EQ(page(get(alice(), "/v1/events?last=1")).events.front().seq, last);
  EXPECT_EQ(count(get(alice(), "/v1/events?from=999")), 0u);
}

TEST_F(EventsTest, AUserReadsOfTheirOwnJobsAndOfTheMachine) {
  (void)running(alice(), "8G");
  EXPECT_EQ(count(get(bob(), "/v1/events?from=1")), 0u);
  EXPECT_EQ(count(get(admin(), "/v1/events?from=1")), engine_.state().last_seq());
  EXPECT_EQ(ask(admin(), "POST", "/v1/cards/0/drain")->status, 200);
  const wire::EventsDocument his = page(get(bob(), "/v1/events?from=1"));
  ASSERT_EQ(his.events.size(), 1u);
  EXPECT_EQ(his.next, engine_.state().last_seq() + 1) << "the events of others are skipped";
}

TEST_F(EventsTest, AReaderWaitsForTheNextEventThatItMaySee) {
  const ClientPtr client = get(alice(), "/v1/events?from=1&wait=1");
  EXPECT_FALSE(client->answered);
  EXPECT_FALSE(service_.idle());
  (void)run(bob(), "8G");
  EXPECT_FALSE(client->answered);
  (void)run(alice(), "8G");
  EXPECT_GE(count(client), 1u);
}

TEST_F(EventsTest, AStreamTellsOfEventsAsTheyHappenAndGoesOnWhereItWas) {
  const ClientPtr client = stream(alice(), "/v1/events");
  EXPECT_TRUE(client->chunks.empty());
  const JobId id = run(alice(), "8G");
  const std::size_t first = client->chunks.size();
  ASSERT_GE(first, 1u);
  EXPECT_TRUE(client->chunks[0].starts_with("id: 1\nevent: job.submitted\ndata: {"));
  EXPECT_EQ(started(alice(), id)->status, 200);
  EXPECT_GT(client->chunks.size(), first);
  const ClientPtr again = ask(alice(), "GET", "/v1/events", "",
                              {{"accept", "text/event-stream"}, {"last-event-id", "1"}});
  ASSERT_FALSE(again->chunks.empty());
  EXPECT_TRUE(again->chunks[0].starts_with("id: 2\n"));
  client->hang_up();
  again->hang_up();
  EXPECT_EQ(ended(alice(), id)->status, 200);
  EXPECT_TRUE(service_.idle());
}

}  // namespace
}  // namespace mete::serve
