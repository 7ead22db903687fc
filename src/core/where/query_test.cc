// SPDX-License-Identifier: Apache-2.0
// Queries against a few nodes: what matches, what could match at some time, and where errors point.
// Each case is a query and a node. Patterns have their own cases, with texts that RE2 alone reads
// differently and patterns of old logs.
#include "core/where/query.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "core/where/pattern.h"

namespace mete::core {
namespace {

NodeFacts node() {
  NodeFacts facts;
  facts.ec2_instance_id = "i-1";
  facts.agent_connected = true;
  facts.agent_version = "1.14.5";
  facts.registered_at = parse_registered_at("2018-02-12T23:59:59Z");
  facts.running_tasks = 3;
  facts.task_groups = {"web", "db"};
  facts.attributes = {{"stack", {"prod"}},
                      {"ssd", {}},
                      {"ecs.instance-type", {"g4dn.xlarge"}},
                      {"gpu.memory", {"16G"}},
                      {"gpu.type", {"T4", "H200"}},
                      {"gpu.count", {"4"}}};
  return facts;
}

bool holds(const std::string& text) {
  const Result<Query> query = Query::parse(text);
  EXPECT_TRUE(query.ok()) << text << ": " << (query ? "" : query.error().message);
  return query && query->matches(node());
}

TEST(Query, Attributes) {
  for (const char* text : {"attribute:stack == prod",
                           "attribute:stack equals prod",
                           "attribute:stack==prod",
                           "attribute:stack == \"prod\"",
                           "attribute:stack == 'prod'",
                           "attribute:stack != test",
                           "attribute:stack not_equals test",
                           "attribute:stack in [test, prod]",
                           "attribute:stack in [ 'test' ,prod ]",
                           "attribute:stack !in [test]",
                           "attribute:stack not_in [test, dev]",
                           "attribute:stack exists",
                           "attribute:ssd exists",
                           "attribute:nothing !exists",
                           "attribute:nothing not_exists",
                           "attribute:stack =~ pr.*",
                           "attribute:stack matches p(r|x)od",
                           "attribute:stack !~ pr",
                           "attribute:stack not_matches x",
                           "attribute:ecs.instance-type =~ g4dn.*",
                           "attribute:gpu.memory >= 16G",
                           "attribute:gpu.memory > 15.5G",
                           "attribute:gpu.memory less_than 1T",
                           "attribute:gpu.count > 3",
                           "attribute:gpu.count < 10",
                           "attribute:gpu.type == H200",
                           "attribute:gpu.type != H200",
                           "attribute:ssd != v"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text :
       {"attribute:stack == test", "attribute:stack == pro", "attribute:stack !in [prod, test]",
        "attribute:stack !exists", "attribute:nothing exists", "attribute:stack =~ pr",
        "attribute:gpu.memory > 16G", "attribute:gpu.type == A100", "attribute:ssd == v"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(Query, WhatIsMissingFitsNothing) {
  for (const char* op : {"== v", "!= v", "> 1", "< 1", "in [v]", "!in [v]", "=~ .*", "!~ v"}) {
    EXPECT_FALSE(holds(std::string("attribute:x ") + op)) << op;
    EXPECT_TRUE(holds(std::string("not(attribute:x ") + op + ")")) << op;
  }
  const Result<Query> query = Query::parse(
      "agentConnected == true or agentVersion > 0 or ec2InstanceId =~ .* or registeredAt > "
      "1970-01-01 or "
      "runningTasksCount >= 0 or task:group =~ .*");
  ASSERT_TRUE(query.ok());
  EXPECT_FALSE(query->matches(NodeFacts{}));
}

TEST(Query, TaskGroups) {
  EXPECT_TRUE(holds("task:group == web"));
  EXPECT_TRUE(holds("task:group != web")) << "some task is in another group";
  EXPECT_FALSE(holds("not(task:group == web)"));
  EXPECT_FALSE(holds("task:group == x"));
  EXPECT_TRUE(holds("task:group in [x, db]"));
  EXPECT_TRUE(holds("task:group !in [db]"));
  EXPECT_FALSE(holds("task:group !in [db, web]"));
  EXPECT_TRUE(holds("task:group exists"));
}

TEST(Query, FieldsOfTheAgent) {
  EXPECT_TRUE(holds("agentConnected == true and agentConnected != false"));
  EXPECT_TRUE(holds("agentVersion == 1.14.5 and agentVersion > 1.9 and agentVersion < 1.14.10"));
  EXPECT_TRUE(holds("agentVersion >= 1.14 and agentVersion <= 1.14.5"));
  EXPECT_TRUE(
      holds("ec2InstanceId == i-1 and ec2InstanceId in [i-2, i-1] and ec2InstanceId =~ i-.*"));
  EXPECT_TRUE(holds("registeredAt < 2018-02-13 and registeredAt > 2018-02-12"));
  EXPECT_TRUE(holds("registeredAt == 2018-02-12T23:59:59"));
  EXPECT_TRUE(holds("registeredAt == 2018-02-13T01:59:59+02:00"));
  EXPECT_TRUE(holds("runningTasksCount == 3 && runningTasksCount > 2 && runningTasksCount != 4"));
}

TEST(Query, AndBindsTighter) {
  const std::string yes = "runningTasksCount == 3";
  const std::string no = "runningTasksCount == 4";
  EXPECT_TRUE(holds(yes + " or " + no + " and " + no));
  EXPECT_FALSE(holds("(" + yes + " or " + no + ") and " + no));
  EXPECT_TRUE(holds("not " + no + " and " + yes));
  EXPECT_TRUE(holds("!" + no + "&&" + yes + "||" + no));
  EXPECT_TRUE(holds("not(" + no + ")and(" + yes + ")"));
  EXPECT_FALSE(holds("!(" + yes + ")"));
  EXPECT_TRUE(holds("not not " + yes));
  EXPECT_TRUE(holds("((" + yes + "))"));
}

TEST(Query, ErrorsPointAtTheCharacter) {
  const auto mark = [](const std::string& text) {
    const Result<Query> query = Query::parse(text);
    EXPECT_FALSE(query.ok()) << text;
    if (query) return std::size_t{999};
    const std::string& evidence = query.error().evidence;
    return evidence.size() - evidence.rfind('\n') - 2;
  };
  EXPECT_EQ(mark(""), 0u);
  EXPECT_EQ(mark("color == red"), 0u);
  EXPECT_EQ(mark("attribute:x"), 11u);
  EXPECT_EQ(mark("attribute:x = v"), 12u);
  EXPECT_EQ(mark("attribute:x =="), 14u);
  EXPECT_EQ(mark("attribute:x in v"), 15u);
  EXPECT_EQ(mark("attribute:x in [a, b"), 20u);
  EXPECT_EQ(mark("attribute:x == 'v"), 15u);
  EXPECT_EQ(mark("attribute:x == v w"), 17u);
  EXPECT_EQ(mark("(attribute:x == v"), 17u);
  EXPECT_EQ(mark("attribute:x == v)"), 16u);
  EXPECT_EQ(mark("attribute:größe == 3 und"), 21u) << "characters, not bytes";
  EXPECT_EQ(mark("attribute:漢字 == 3 und"), 20u) << "two columns each";
  EXPECT_EQ(mark("attribute:x\t==\tv w"), 17u) << "a tab is shown as one space";
  EXPECT_EQ(mark("attribute:x == \x1b[1m w"), 23u) << "what a terminal must not get is written out";
  EXPECT_EQ(mark("attribute:x == " + std::string(200, 'y') + " w"), 50u);
  EXPECT_EQ(mark("attribute:x == " + std::string(200, 'y') + "ü w"), 50u);
  EXPECT_EQ(mark("attribute:x =~ 'a[b'"), 19u) << "inside the quotes";
  EXPECT_EQ(mark("attribute:x =~ \"\\\"[b\""), 20u) << "behind an escaped quote";
  EXPECT_EQ(mark("agentConnected in [true, maybe]"), 25u) << "the one that is wrong";
  EXPECT_EQ(mark("attribute:x == v and"), 20u);
  EXPECT_EQ(mark("attribute: == v"), 0u);
  EXPECT_EQ(mark("agentVersion exists"), 13u);
  EXPECT_EQ(mark("agentVersion =~ 1.*"), 13u);
  EXPECT_EQ(mark("runningTasksCount > many"), 20u);
  EXPECT_EQ(mark("registeredAt > yesterday"), 15u);
  EXPECT_EQ(mark("task:group > a"), 11u);
  EXPECT_EQ(mark("agentConnected == yes"), 18u);
  EXPECT_EQ(mark("attribute:x =~ a[b"), 18u);
  EXPECT_EQ(mark("attribute:x =~ *"), 15u);
}

TEST(Query, IsNotLongerThanItMayBe) {
  const std::string begin = "attribute:x == ";
  EXPECT_TRUE(Query::parse(begin + std::string(kMaxQuery - begin.size(), 'v')).ok());
  EXPECT_FALSE(Query::parse(begin + std::string(kMaxQuery - begin.size() + 1, 'v')).ok());
  EXPECT_FALSE(Query::parse(std::string(1'900, '(')).ok());
  EXPECT_FALSE(Query::parse(std::string(1'900, '!')).ok());
}

TEST(Query, AmountsAreEqualByWhatTheyAreWorth) {
  EXPECT_TRUE(holds("attribute:gpu.memory == 16384M"));
  EXPECT_TRUE(holds("attribute:gpu.memory in [8G, 17179869184]"));
  EXPECT_FALSE(holds("attribute:gpu.memory != 16GiB"));
  EXPECT_FALSE(holds("attribute:gpu.count == 4.0")) << "text, as in the cloud";
}

TEST(Query, SaysWhetherItCouldEverBeTrue) {
  const auto may = [](const char* text) {
    const Varying free{"gpu.free", 0, Bytes::from_gib(16).count()};
    return Query::parse(text)->may_match(node(), std::span(&free, 1));
  };
  EXPECT_TRUE(may("attribute:gpu.free >= 16G"));
  EXPECT_FALSE(may("attribute:gpu.free > 16G"));
  EXPECT_TRUE(may("attribute:gpu.free < 1G and attribute:stack == prod"));
  EXPECT_FALSE(may("attribute:gpu.free < 1G and attribute:stack == test"));
  EXPECT_TRUE(may("attribute:gpu.free == 3G"));
  EXPECT_FALSE(may("attribute:gpu.free in [17G, 20G]"));
  EXPECT_TRUE(may("attribute:gpu.free !in [17G, 20G]"));
  EXPECT_FALSE(may("not(attribute:gpu.free !in [17G, 20G])"));
  EXPECT_FALSE(may("not(attribute:gpu.free <= 16G) or attribute:stack != prod"));
  EXPECT_TRUE(may("attribute:gpu.free =~ 1.*")) << "nobody knows";
  EXPECT_TRUE(may("attribute:gpu.free > 3x")) << "as text 4096 is";
  EXPECT_TRUE(may("runningTasksCount == 17 and not(runningTasksCount < 9)"));
  EXPECT_FALSE(may("runningTasksCount < 0"));
  EXPECT_FALSE(may("attribute:other > 1"));
}

TEST(Pattern, MatchesWholeValues) {
  const auto matches = [](const char* pattern, const char* value) {
    const Result<Pattern> parsed = Pattern::parse(pattern);
    EXPECT_TRUE(parsed.ok()) << pattern << ": " << (parsed ? "" : parsed.error().message);
    return parsed && parsed->matches(value);
  };
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("a|bc|", "bc"));
  EXPECT_TRUE(matches("a|bc|", ""));
  EXPECT_TRUE(matches("(ab)*c", "ababc"));
  EXPECT_FALSE(matches("(ab)*c", "abac"));
  EXPECT_TRUE(matches("[a-c^x-]+", "abc^-x"));
  EXPECT_TRUE(matches("[^a]\\.\\d{2,3}", "b.123"));
  EXPECT_FALSE(matches("\\d{2,3}", "1"));
  EXPECT_FALSE(matches("\\d{2,3}", "1234"));
  EXPECT_TRUE(matches("\\d{2,}", "1234"));
  EXPECT_TRUE(matches("^a.c$", "aüc")) << "one character, two bytes";
  EXPECT_TRUE(matches("(?:x+x+)+y", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy"));
  EXPECT_FALSE(matches("(?:x+x+)+y", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
  EXPECT_TRUE(matches("(a?){30}a{30}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
  EXPECT_TRUE(matches("(a*)*b", "aaab"));
  EXPECT_TRUE(matches("[]]", "]"));
  for (const char* wrong : {"(", ")", "[", "[b-a]", "*a", "a{2", "a{3,2}", "\\", "\\1", "(?=a)",
                            "a++", "[a&&b]", "(a{999}){999}", "a{1001}"})
    EXPECT_FALSE(Pattern::parse(wrong).ok()) << wrong;
  // RE2 alone reads these differently.
  EXPECT_FALSE(matches("a.c", "a\rc")) << "an end of line";
  EXPECT_TRUE(matches("\\s[\\s]", "\v\v"));
  EXPECT_FALSE(matches("\\S|[\\S]", "\v"));
  EXPECT_TRUE(matches("a**b{2}{2}", "aabbbb"));
  EXPECT_TRUE(matches("(^)*\\_[\\d-]$", "_-"));
  EXPECT_FALSE(matches("[^a]", "ü")) << "a set has bytes";
  // Queries with these are in the logs of older daemons, and must stay readable.
  const std::string many(2'500, 'a');
  EXPECT_TRUE(matches("(a{50}){50}", many.c_str()));
  EXPECT_FALSE(matches("(a{50}){50}", many.c_str() + 1));
  EXPECT_TRUE(matches("(a{2}){1,3}b", "aaaab"));
  EXPECT_FALSE(matches("(a{2}){1,3}b", "aaaaaaaab"));
  EXPECT_TRUE(matches("(a{2}){2,}", "aaaaaaaaaa"));
  EXPECT_TRUE(matches("x(a{2}){0}", "x"));
  EXPECT_TRUE(matches("[\\t-z]+", "\tuz"));
  EXPECT_FALSE(matches("[\\t-z]", "a"));
  EXPECT_TRUE(matches("[.-\\d]+", "05d"));
  for (const char* wrong : {"(?i)a", "[[:alpha:]]", "\\pN"})
    EXPECT_FALSE(Pattern::parse(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace mete::core
