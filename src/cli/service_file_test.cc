// SPDX-License-Identifier: Apache-2.0
#include "cli/service_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mete::cli {
namespace {

using core::service::Access;
using core::service::Probe;

ServiceFile parse(const std::string& text) {
  Result<ServiceFile> file = parse_service_file(text, "s.yaml");
  EXPECT_TRUE(file.ok()) << file.error().message;
  return file ? *std::move(file) : ServiceFile{};
}

std::string message(const std::string& text) {
  const Result<ServiceFile> file = parse_service_file(text, "s.yaml");
  return file ? "fine" : file.error().message;
}
// Of a file with one service and these lines in it.
std::string message_of(const std::string& lines) {
  return message("services:\n- name: chat\n  command: serve\n" + lines);
}

TEST(ServiceFile, ReadsEveryKey) {
  const ServiceFile file = parse(R"(
room: 60G
swap_rate: 40G
services:
- name: chat
  command: vllm serve /models/llama --port $PORT
  gpu: 20G
  models: [llama-8b, llama]
  ready: {http: /health}
  live: {exec: [curl, -f, localhost]}
  concurrency: 8
  queue: 50
  replicas: 0..4
  autoscaling: {window: 30s, max_upscale_factor: 2, downscale_stabilization_period: 10m}
  park_after: 90s
  hold: 2m
  max_wait: 20s
  start_timeout: 1h
  no_wake: /metrics
  access: users
  origins: [https://a.example]
  body_limit: 1G
)");
  ASSERT_EQ(file.services.size(), 1u);
  EXPECT_EQ(file.room, Bytes::from_gib(60));
  EXPECT_EQ(file.swap_rate, Bytes::from_gib(40));
  const core::service::ServiceSpec& spec = file.services[0].spec;
  EXPECT_EQ(spec.name, "chat");
  EXPECT_EQ(spec.models, (std::vector<std::string>{"llama-8b", "llama"}));
  EXPECT_EQ(spec.ready, (Probe{Probe::Kind::kHttp, "/health", {}}));
  EXPECT_EQ(spec.live, (Probe{Probe::Kind::kExec, "", {"curl", "-f", "localhost"}}));
  EXPECT_EQ(spec.concurrency, 8u);
  EXPECT_EQ(spec.queue, 50u);
  EXPECT_EQ(spec.scaling.min, 0u);
  EXPECT_EQ(spec.scaling.max, 4u);
  EXPECT_EQ(spec.scaling.window_s, 30);
  EXPECT_EQ(spec.scaling.max_up, 2);
  EXPECT_EQ(spec.scaling.down_period_s, 600);
  EXPECT_EQ(spec.scaling.target_in_flight, 8) << "the concurrency";
  EXPECT_EQ(spec.park_after_s, 90);
  EXPECT_EQ(spec.hold_s, 120);
  EXPECT_EQ(spec.max_wait_s, 20);
  EXPECT_EQ(spec.start_timeout_s, 3600);
  EXPECT_EQ(spec.no_wake, (std::vector<std::string>{"/metrics"}));
  EXPECT_EQ(spec.access, Access::kUsers);
  EXPECT_EQ(spec.origins, (std::vector<std::string>{"https://a.example"}));
  EXPECT_EQ(spec.body_limit, Bytes::from_gib(1));
  EXPECT_EQ(file.services[0].job.program.shell, "vllm serve /models/llama --port $PORT");
  const Word gpu{"--gpu", "20G", "s.yaml:7:8"};
  EXPECT_NE(std::find(file.services[0].job.words.begin(), file.services[0].job.words.end(), gpu),
            file.services[0].job.words.end());
}

TEST(ServiceFile, HyphensAndUnderscoresAreEqual) {
  const ServiceFile file = parse(
      "services:\n- {name: a, park-after: never, autoscaling: {min-replicas: 2, max_replicas: 3}}");
  EXPECT_TRUE(file.services.at(0).spec.parks_never);
  EXPECT_EQ(file.services.at(0).spec.scaling.min, 2u);
  EXPECT_EQ(file.services.at(0).spec.scaling.max, 3u);
}

TEST(ServiceFile, WhatStandsAboveIsOfAllServices) {
  const ServiceFile file = parse(
      "gpu: 8G\nconcurrency: 4\nservices:\n- name: a\n- {name: b, concurrency: 2, gpu: 1G}\n");
  ASSERT_EQ(file.services.size(), 2u);
  EXPECT_EQ(file.services[0].spec.concurrency, 4u);
  EXPECT_EQ(file.services[1].spec.concurrency, 2u);
  EXPECT_EQ(file.services[0].job.words.back().value, "a");
}

TEST(ServiceFile, ReplicasAndAutoscaling) {
  EXPECT_EQ(parse("services:\n- {name: a, replicas: 3}").services.at(0).spec.scaling.max, 3u);
  EXPECT_EQ(message_of("  replicas: 4..0\n"), "s.yaml:2: max_replicas is 0");
  EXPECT_EQ(message_of("  replicas: 4..2\n"),
            "s.yaml:2: min_replicas is 4, more than max_replicas, 2");
  EXPECT_EQ(message_of("  replicas: many\n"), "s.yaml:4:13: replicas is 'many'");
  EXPECT_EQ(message_of("  replicas: 1..\n"), "s.yaml:4:13: replicas is '1..'");
  EXPECT_EQ(message_of("  replicas: 2..3\n  autoscaling: {max_replicas: 9}\n"),
            "s.yaml:4:13: replicas and autoscaling: contradict each other");
  EXPECT_EQ(message_of("  replicas: 2..3\n  autoscaling: {max_replicas: 3}\n"), "fine");
  EXPECT_EQ(message_of("  autoscaling: {window: 15s}\n"), "s.yaml:2: window is 15 s");
  EXPECT_EQ(message_of("  autoscaling: {windw: 10s}\n"),
            "s.yaml:4:24: autoscaling has no key 'windw'");
}

TEST(ServiceFile, ErrorsHaveTheirPlace) {
  EXPECT_EQ(message(""), "s.yaml says nothing");
  EXPECT_EQ(message("a: b"), "s.yaml:1:1: there is no key 'a'");
  EXPECT_EQ(message("gpu: 8G"), "s.yaml:1:1: there is no services:");
  EXPECT_EQ(message("services: []"), "s.yaml:1:11: services: is a list of services");
  EXPECT_EQ(message("services:\n- command: x\n"), "s.yaml:2: a service has no name");
  EXPECT_EQ(message("services:\n- {name: a}\n- {name: a}\n"),
            "s.yaml:3: there are two services 'a'");
  EXPECT_EQ(message("services:\n- {name: a}\n- {name: b, models: [x, a]}\n"),
            "s.yaml:3: the model 'a' belongs to a already");
  EXPECT_EQ(message_of("  replcas: 1\n"), "s.yaml:4:3: there is no key 'replcas'");
  EXPECT_EQ(message_of("  room: 1G\n"), "s.yaml:4:3: there is no key 'room'");
  EXPECT_EQ(message_of("  concurrency: lots\n"),
            "s.yaml:4:16: concurrency is 'lots', which is no number");
  EXPECT_EQ(message_of("  park_after: soon\n"),
            "s.yaml:4:15: park_after is 'soon', which is no duration up to a day");
  EXPECT_EQ(message_of("  ready: {htp: /x}\n"),
            "s.yaml:4:10: ready is tcp, {http: PATH} or {exec: COMMAND}");
  EXPECT_EQ(message_of("  resident: never\n"), "s.yaml:4:13: resident is always, or is left out");
  EXPECT_EQ(message_of("  access: all\n"),
            "s.yaml:4:11: access is owner, users or anyone, not 'all'");
  EXPECT_EQ(message_of("  array: 1-3\n"), "s.yaml:4:10: a service has no array");
  EXPECT_EQ(message_of("  models: {a: b}\n"), "s.yaml:4:15: models is a list of words");
  EXPECT_EQ(message_of("  hold:\n"), "s.yaml:4:3: hold has no value");
  EXPECT_EQ(message_of("  models: [[[[[a]]]]]\n"), "s.yaml:4:14: models is too deep");
}

TEST(ServiceFile, AliasesDoNotMultiply) {
  std::string text = "x: &a [";
  std::string big;
  for (int i = 0; i < 2'000; ++i) big += "k,";
  text = "services:\n- name: chat\n  models: &a [" + big + "]\n  origins: [";
  for (int i = 0; i < 2'000; ++i) text += "*a , ";
  EXPECT_NE(message(text + "]\n").find("more than 100000 values"), std::string::npos);
}

}  // namespace
}  // namespace mete::cli
