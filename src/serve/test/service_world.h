// SPDX-License-Identifier: Apache-2.0
// For the tests of the service: a daemon without a machine, its clients and their answers. A test
// reads as: ask, run, started, see. One card of 80 GiB, read once.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "serve/service.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_launcher.h"
#include "tests/support/mem_store.h"
#include "wire/job.h"
#include "wire/sweep.h"

namespace mete::serve {

inline constexpr char kCard[] = "GPU-0";
// Users that exist on no machine: their names are their numbers. The daemon runs as kDaemonUid.
inline constexpr uid_t kAliceUid = 4'100'001, kBobUid = 4'100'002, kDaemonUid = 4'100'003;
inline constexpr gid_t kAdminGid = 4'100'009;
inline net::Peer alice(pid_t pid = 501) { return {kAliceUid, kAliceUid, pid}; }
inline net::Peer bob() { return {kBobUid, kBobUid, 601}; }
inline net::Peer admin() { return {kBobUid + 5, kBobUid, 701, {kAdminGid}}; }
// This process: only existing processes can submit jobs.
inline net::Peer this_user() { return {geteuid(), getegid(), getpid()}; }

inline Bytes gib(std::uint64_t count) { return Bytes::from_gib(count); }

// Three trials at most, each on 8 GiB.
inline wire::SweepRequest sweep_request(const std::string& name) {
  wire::SweepRequest request;
  request.plan.name = name;
  request.plan.space = *core::sweep::Space::make({{"lr", core::sweep::Range{0, 1}}});
  request.plan.sampling = {core::sweep::Method::kRandom, 7, 3, false};
  request.submit.spec.name = "train";
  request.submit.spec.command = {"train", "{lr}"};
  request.submit.spec.folder = "/";
  request.submit.spec.request.gpu = *core::parse_gpu("8G");
  request.submit.spec.detached.emplace();
  return request;
}
inline std::string sweep_body(const std::string& name) { return wire::encode(sweep_request(name)); }

// The answers to one client. The test decides whether it reads and whether it hangs up.
struct Client final : net::Responder::Exchange {
  void reply(const net::Response& response) override {
    ASSERT_FALSE(answered) << "answered twice";
    answered = true;
    status = response.status;
    body = response.body;
    type = response.content_type;
    held = response.held != nullptr;
  }
  void on_gone(std::function<void()> function) override { when_gone = std::move(function); }
  bool gone() const override { return hung_up; }
  void start_stream(const net::Response& head) override {
    ASSERT_FALSE(answered) << "answered twice";
    answered = true;
    type = head.content_type;
  }
  bool send(std::string_view chunk) override {
    chunks.emplace_back(chunk);
    return !hung_up;
  }
  std::size_t unsent() const override { return reads ? 0 : chunks.size(); }
  std::size_t unread() const override { return unsent(); }
  void on_sent(std::function<void()> /*function*/) override {}
  void close() override { closed = true; }

  void hang_up() {
    hung_up = true;
    if (when_gone) when_gone();
  }
  Error error() const { return wire::decode_error(body); }

  bool answered = false;
  int status = 0;
  std::string body;
  std::string type;
  bool held = false;  // the answer holds a place of its user
  std::vector<std::string> chunks;
  bool closed = false;
  bool reads = true;
  bool hung_up = false;
  std::function<void()> when_gone;
};
using ClientPtr = std::shared_ptr<Client>;

class ServiceTest : public testing::Test {
 protected:
  explicit ServiceTest(bool read = true, core::Others others = core::Others::kRows)
      : engine_(clock_, store_, launcher_, {}), service_(loop_, clock_, engine_, identity(others)) {
    EXPECT_TRUE(engine_.recover().ok());
    reading_.pool.cards.resize(1);
    reading_.pool.cards[0].card = {0, kCard, "H200", gib(80), gib(81), "NVIDIA H200"};
    reading_.cards[kCard].sized = true;
    reading_.driver = "580";
    if (read) see();
  }

  static Identity identity(core::Others others) {
    Identity identity;
    identity.others = others;
    identity.version = "1.2.3";
    identity.mode = "system";
    identity.uid = kDaemonUid;
    identity.admin_gid = kAdminGid;
    identity.metric_jobs = 2;
    return identity;
  }

  // Runs everything that is posted, and what follows from it.
  void settle() {
    for (int round = 0; round < 16; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }
  // A new reading, ten milliseconds later.
  void see() {
    clock_.advance(seam::Milliseconds(10));
    reading_.read_at = clock_.monotonic();
    service_.see(reading_);
    settle();
  }

  ClientPtr ask(const net::Peer& peer, const std::string& method, const std::string& target,
                const std::string& body = "", const net::Fields& headers = {}) {
    const Result<net::Target> parsed = net::parse_target(target);
    EXPECT_TRUE(parsed.ok()) << target;
    auto client = std::make_shared<Client>();
    service_.handle({method, parsed->path, parsed->query, headers, body, peer},
                    net::Responder(client));
    settle();
    return client;
  }
  ClientPtr get(const net::Peer& peer, const std::string& target) {
    return ask(peer, "GET", target);
  }
  ClientPtr stream(const net::Peer& peer, const std::string& target) {
    return ask(peer, "GET", target, "", {{"accept", "text/event-stream"}});
  }

  static core::JobSpec spec(const std::string& gpu) {
    core::JobSpec spec;
    spec.name = "train";
    spec.command = {"train"};
    spec.folder = "/";
    spec.request.gpu = *core::parse_gpu(gpu);
    return spec;
  }
  // Each body is from another runner, since a runner has at most one job.
  std::string run_body(const std::string& gpu) {
    return wire::encode(wire::RunRequest{spec(gpu), ++runner_ticks_, true});
  }
  static wire::RunReply job_in(const ClientPtr& client) {
    Result<wire::RunReply> reply = wire::decode_run_reply(client->body);
    EXPECT_TRUE(reply.ok()) << client->status << " " << client->body;
    return reply.ok() ? *std::move(reply) : wire::RunReply();
  }
  static core::JobState state_in(const ClientPtr& client) { return job_in(client).view.job.state; }
  static std::string path_of(core::JobId id, const std::string& rest = "") {
    return "/v1/jobs/" + to_string(id) + rest;
  }

  // A job of `mete run`; it is granted if there is room.
  core::JobId run(const net::Peer& peer, const std::string& gpu) {
    const ClientPtr client = ask(peer, "POST", "/v1/jobs", run_body(gpu));
    EXPECT_EQ(client->status, 201) << client->body;
    return job_in(client).view.job.id;
  }
  ClientPtr started(const net::Peer& peer, core::JobId id) {
    return ask(peer, "POST", path_of(id, "/started"), wire::encode(wire::StartReport{{900, 1}, 0}));
  }
  ClientPtr ended(const net::Peer& peer, core::JobId id) {
    wire::EndReport end;
    end.exit.code = 0;
    return ask(peer, "POST", path_of(id, "/ended"), wire::encode(end));
  }
  core::JobId running(const net::Peer& peer, const std::string& gpu) {
    const core::JobId id = run(peer, gpu);
    EXPECT_EQ(started(peer, id)->status, 200);
    return id;
  }

  net::Loop loop_;
  tests::FakeClock clock_;
  tests::FaultyStore store_;
  tests::FakeLauncher launcher_;
  engine::Engine engine_;
  Service service_;
  MachineReading reading_;
  std::uint64_t runner_ticks_ = 6;
};

}  // namespace mete::serve
