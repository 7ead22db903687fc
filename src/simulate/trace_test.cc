// SPDX-License-Identifier: Apache-2.0
#include "simulate/trace.h"

#include <gtest/gtest.h>

namespace mete::simulate {
namespace {

constexpr std::string_view kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\n";

std::string nodes_error(std::string_view text) {
  const auto nodes = parse_nodes(text, "nodes.csv");
  return nodes ? "" : nodes.error().message;
}

std::string jobs_error(std::string_view text) {
  const auto jobs = parse_jobs(text, "jobs.csv", *parse_nodes(kNodes, "nodes.csv"));
  return jobs ? "" : jobs.error().message;
}

TEST(Trace, ReadsNodesByTheNamesOfColumns) {
  const auto nodes =
      parse_nodes("model,gpu,other,sn,memory_mib,cpu_milli\r\nG2,8,x,\"a,\"\"b\",10,20\r\n\n", "n");
  ASSERT_TRUE(nodes.ok()) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 1u);
  EXPECT_EQ((*nodes)[0].name, "a,\"b");
  EXPECT_EQ((*nodes)[0].cpu_milli, 20);
  EXPECT_EQ((*nodes)[0].ram_mib, 10);
  EXPECT_EQ((*nodes)[0].cards, 8u);
  EXPECT_EQ((*nodes)[0].card_type, "G2");
}

TEST(Trace, WrongNodesAreNamedWithTheirLine) {
  EXPECT_EQ(nodes_error(""), "nodes.csv:1: the first line must name the columns");
  EXPECT_EQ(nodes_error("sn,cpu_milli,memory_mib,gpu\n"),
            "nodes.csv:1: there is no column 'model'");
  EXPECT_EQ(nodes_error("sn,sn\n"), "nodes.csv:1: there are two columns 'sn'");
  const std::string head = "sn,cpu_milli,memory_mib,gpu,model\n";
  EXPECT_EQ(nodes_error(head), "nodes.csv:1: there are no nodes");
  EXPECT_EQ(nodes_error(head + "a,1,1,1,T4\n\na,1,1,1,T4\n"),
            "nodes.csv:4: there are two nodes 'a'");
  EXPECT_EQ(nodes_error(head + "a,-1,1,1,T4\n"),
            "nodes.csv:2: cpu_milli must be a whole number from 0, not '-1'");
  EXPECT_EQ(nodes_error(head + "a,1,1,1e9,T4\n"),
            "nodes.csv:2: gpu must be a whole number from 0, not '1e9'");
  EXPECT_EQ(nodes_error(head + "a,1,1,17,T4\n"), "nodes.csv:2: gpu is 17; the most is 16");
  EXPECT_EQ(nodes_error(head + "a,99999999999999999999,1,1,T4\n"),
            "nodes.csv:2: cpu_milli must be a whole number from 0, not '99999999999999999999'");
  EXPECT_EQ(nodes_error(head + "a,1,1,1\n"), "nodes.csv:2: there are 4 fields for 5 columns");
  EXPECT_EQ(nodes_error(head + "a,1,1,1,\n"), "nodes.csv:2: node 'a' has cards of no model");
  EXPECT_EQ(nodes_error(head + "\"a,1,1,1,T4\n"), "nodes.csv:2: a quote is not closed");
}

TEST(Trace, WrongJobsAreNamedWithTheirLine) {
  const std::string head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  EXPECT_EQ(jobs_error("name,cpu_milli,memory_mib,num_gpu\nx,1,1,1\n"),
            "jobs.csv:1: there is no column 'gpu_milli'");
  EXPECT_EQ(jobs_error(head), "jobs.csv:1: there are no jobs");
  EXPECT_EQ(jobs_error(head + "a,1,1,1,1001,\n"),
            "jobs.csv:2: gpu_milli is 1001; the most is 1000");
  EXPECT_EQ(jobs_error(head + "a,1,1,1,0,\n"), "jobs.csv:2: gpu_milli is 0, but num_gpu is not");
  EXPECT_EQ(jobs_error(head + "a,1,1,1,500,H100\n"),
            "jobs.csv:2: no node has a card of type 'H100'");
  EXPECT_EQ(jobs_error(head + "a,1,1,1,500,H100|G2\n"), "");
}

TEST(Trace, JobsWithoutCardsHaveNoTypes) {
  const auto jobs =
      parse_jobs("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na,1,2,0,300,X\n",
                 "jobs.csv", *parse_nodes(kNodes, "nodes.csv"));
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ((*jobs)[0].ask, (core::cluster::Ask{.cpu_milli = 1, .ram_mib = 2}));
}

TEST(Trace, TimesAreReadWhereTheyAreNeeded) {
  const std::string head =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time,"
      "user,priority,time_limit\n";
  const auto nodes = *parse_nodes(kNodes, "nodes.csv");
  const auto read = [&](const std::string& text) {
    return parse_jobs(text, "jobs.csv", nodes, Times::kNeeded);
  };
  const auto jobs = read(head + "a,1,1,0,0,10,70.5,20,bob,-3,90\nb,1,1,0,0,10,70,,,,\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  const JobTimes& first = *(*jobs)[0].times;
  EXPECT_EQ(first.submit_ms, 10'000);
  EXPECT_EQ(first.run_ms, 50'500);
  EXPECT_EQ(first.user, "bob");
  EXPECT_EQ(first.priority, -3);
  EXPECT_EQ(first.limit_s, 90u);
  EXPECT_EQ((*jobs)[1].times->run_ms, 60'000);
  EXPECT_FALSE((*jobs)[1].times->limit_s);
  EXPECT_FALSE(parse_jobs(head + "a,1,1,0,0,x,y,,,,\n", "jobs.csv", nodes).value().front().times);
  const auto wrong = [&](const std::string& row) { return read(head + row).error().message; };
  EXPECT_EQ(wrong("a,1,1,0,0,x,70,,,,\n"),
            "jobs.csv:2: creation_time must be a number of seconds from 0 to 10000000000, not 'x'");
  EXPECT_EQ(wrong("a,1,1,0,0,10,1700000000,,,,\n"),
            "jobs.csv:2: a job cannot run for more than ten years");
  const auto since_1970 = read(head + "a,1,1,0,0,1700000000,1700000060,,,,\n");
  ASSERT_TRUE(since_1970) << since_1970.error().message;
  EXPECT_EQ(since_1970->front().times->run_ms, 60'000);
  EXPECT_EQ(wrong("a,1,1,0,0,10,5,,,,\n"),
            "jobs.csv:2: a job cannot end before it begins, nor begin before it is created");
  EXPECT_EQ(wrong("a,1,1,0,0,10,50,,,1001,\n"),
            "jobs.csv:2: priority must be from -1000 to 1000, not '1001'");
  EXPECT_EQ(read("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n").error().message,
            "jobs.csv:1: there is no column 'creation_time'");
}

TEST(Trace, ArrivalsPastTheEndAreNamedWithTheirLine) {
  EXPECT_EQ(*parse_arrivals("0\n1\n\n 0\n", "a.txt", 2), (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(parse_arrivals("0\n2\n", "a.txt", 2).error().message,
            "a.txt:2: 2 is past the end: there are 2 jobs, counted from 0");
  EXPECT_EQ(parse_arrivals("0\nx\n", "a.txt", 2).error().message, "a.txt:2: not a number: 'x'");
  EXPECT_FALSE(parse_ranks("0\n0\n", "r.txt", 2).ok());
  EXPECT_FALSE(parse_ranks("0\n", "r.txt", 2).ok());
}

}  // namespace
}  // namespace mete::simulate
