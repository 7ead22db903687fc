// SPDX-License-Identifier: Apache-2.0
// Starting a private daemon, with test/daemon.cc in place of meted: one client or many at once,
// daemons that fail, die or end meanwhile, and what a daemon inherits from its starter. Each test
// has its own state folder; a pid file counts the daemons that ever listened.
#include "net/daemon_start.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "net/address_file.h"
#include "net/ready_pipe.h"
#include "net/test/support.h"

namespace mete::net {
namespace {

class DaemonStartTest : public testing::Test {
 protected:
  DaemonStartTest() {
    start_.program = std::string(getenv("METE_BUILD_DIR")) + "/tests/net_test_daemon";
    start_.patience = kLong;
    start_.connect.timeout = kLong;
  }
  ~DaemonStartTest() override { stop(); }

  DaemonPlaces places() const {
    return {folder_ / "run/s", "", folder_ / "state", folder_ / "no-system"};
  }
  // Asks the daemon to end; it is gone when the connection ends.
  void stop() {
    Result<HttpClient> client = connect_daemon(places(), {kLong});
    if (!client) return;
    EXPECT_TRUE(client->request("POST", "/stop", "", {kLong}));
  }
  std::set<std::string> daemons_ever() const {
    const Result<std::string> pids = base::read_all(folder_ / "state/pids");
    std::set<std::string> all;
    if (pids)
      for (const std::string_view line : base::split(base::trim(*pids), '\n')) all.emplace(line);
    return all;
  }

  TemporaryFolder folder_;
  DaemonStart start_;
};

TEST_F(DaemonStartTest, StartsOneThatIsDetachedFromUs) {
  ASSERT_EQ(setenv("METE_SIM", "4xH200", 1), 0);
  ASSERT_EQ(setenv("SECRET_OF_THIS_SHELL", "x", 1), 0);
  // Like a careless client: an ignored signal, a blocked one, and open descriptors without
  // close-on-exec.
  signal(SIGHUP, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const Fd leak(dup(STDERR_FILENO));
  Result<DaemonConnection> daemon = connect_or_start(places(), start_);
  signal(SIGHUP, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ASSERT_TRUE(daemon) << daemon.error().message << daemon.error().evidence;
  EXPECT_TRUE(daemon->started);
  const std::string self = daemon->client.request("GET", "/self", "", {kLong})->body;
  EXPECT_TRUE(self.starts_with("fd=0\nfd=1\nfd=2\nfd=3\npid=")) << self;
  EXPECT_NE(self.find("\ncwd=/\n"), std::string::npos);
  EXPECT_EQ(self.find("ignored="), std::string::npos) << self;
  EXPECT_EQ(self.find("blocked="), std::string::npos) << self;
  EXPECT_EQ(self.find("\nsid=" + std::to_string(getsid(0)) + "\n"), std::string::npos);
  EXPECT_EQ(self.find("\nppid=" + std::to_string(getpid()) + "\n"), std::string::npos);
  EXPECT_NE(self.find("\nenv METE_SIM=4xH200\n"), std::string::npos);
  EXPECT_NE(self.find("\nenv METE_SOCKET=" + (folder_ / "run/s") + "\n"), std::string::npos);
  EXPECT_EQ(self.find("METE_READY_FD"), std::string::npos);
  EXPECT_EQ(self.find("SECRET_OF_THIS_SHELL"), std::string::npos);
  ASSERT_EQ(unsetenv("METE_SIM"), 0);
  ASSERT_EQ(unsetenv("SECRET_OF_THIS_SHELL"), 0);
}

TEST_F(DaemonStartTest, TheSecondClientConnects) {
  const Result<DaemonConnection> first = connect_or_start(places(), start_);
  ASSERT_TRUE(first) << first.error().message;
  const Result<DaemonConnection> second = connect_or_start(places(), start_);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->started);
  EXPECT_EQ(daemons_ever().size(), 1u);
}

TEST_F(DaemonStartTest, OfThirtyTwoClientsAtOnceOneStartsIt) {
  constexpr int kClients = 32;
  Result<base::Pipe> go = base::make_pipe();
  Result<base::Pipe> told = base::make_pipe();
  ASSERT_TRUE(go && told);
  std::vector<pid_t> clients;
  for (int i = 0; i < kClients; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      go->write.reset();
      char byte = 0;
      (void)!read(go->read.get(), &byte, 1);  // all at once, when the other end closes
      Result<DaemonConnection> daemon = connect_or_start(places(), start_);
      const bool answers = daemon && daemon->client.request("GET", "/self", "", {kLong});
      (void)!write(told->write.get(), !answers ? "f" : daemon->started ? "s" : "c", 1);
      _exit(0);
    }
    clients.push_back(child);
  }
  go->write.reset();
  told->write.reset();
  std::string outcomes;
  char byte = 0;
  while (read(told->read.get(), &byte, 1) == 1) outcomes += byte;
  for (const pid_t client : clients) ASSERT_EQ(waitpid(client, nullptr, 0), client);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), 's'), 1) << outcomes;
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), 'c'), kClients - 1) << outcomes;
  EXPECT_EQ(daemons_ever().size(), 1u);
}

TEST_F(DaemonStartTest, AClientThatComesWhileTheDaemonEndsStartsTheNext) {
  for (std::size_t round = 1; round <= 5; ++round) {
    Result<DaemonConnection> daemon = connect_or_start(places(), start_);
    ASSERT_TRUE(daemon) << daemon.error().message;
    EXPECT_EQ(daemons_ever().size(), round);
    ASSERT_TRUE(daemon->client.request("POST", "/stop", "", {kLong}));
  }
}

TEST_F(DaemonStartTest, AKilledDaemonIsReplaced) {
  ASSERT_TRUE(connect_or_start(places(), start_));
  const std::string first = *daemons_ever().begin();
  Result<HttpClient> client = connect_daemon(places(), {kLong});
  ASSERT_TRUE(client);
  ASSERT_EQ(kill(std::stoi(first), SIGKILL), 0);
  const Result<Waited> dead = wait_for(client->descriptor(), POLLIN, -1, Deadline::in(kLong));
  ASSERT_TRUE(dead && *dead == Waited::kReady);
  const Result<DaemonConnection> next = connect_or_start(places(), start_);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(next->started);
  EXPECT_EQ(daemons_ever().size(), 2u);
}

TEST_F(DaemonStartTest, TheDaemonsOwnWordsAreTheError) {
  ASSERT_EQ(setenv("METE_TEST_DAEMON", "fail", 1), 0);
  const Result<DaemonConnection> daemon = connect_or_start(places(), start_);
  ASSERT_EQ(unsetenv("METE_TEST_DAEMON"), 0);
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error(), (Error{ErrorCode::kCorrupt, "the ledger is broken", "e", "h"}));
}

TEST_F(DaemonStartTest, TheLogIsTheEvidenceWhenTheDaemonJustDies) {
  ASSERT_EQ(setenv("METE_TEST_DAEMON", "die", 1), 0);
  const Result<DaemonConnection> daemon = connect_or_start(places(), start_);
  ASSERT_EQ(unsetenv("METE_TEST_DAEMON"), 0);
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code, ErrorCode::kIo);
  EXPECT_EQ(daemon.error().evidence, "test daemon: last words\n");
}

TEST_F(DaemonStartTest, SaysThatTheProgramIsNotThere) {
  start_.program = "/nowhere/meted";
  const Result<DaemonConnection> daemon = connect_or_start(places(), start_);
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code, ErrorCode::kNotFound);
  EXPECT_NE(daemon.error().evidence.find("/nowhere/meted"), std::string::npos);
}

TEST_F(DaemonStartTest, StartsNoneWhereOthersCouldTakeItsPlace) {
  ASSERT_EQ(mkdir((folder_ / "run").c_str(), 0700), 0);
  ASSERT_EQ(chmod((folder_ / "run").c_str(), 0777), 0);
  const Result<DaemonConnection> daemon = connect_or_start(places(), start_);
  ASSERT_FALSE(daemon);
  EXPECT_EQ(daemon.error().code, ErrorCode::kDenied);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "run"));
}

TEST_F(DaemonStartTest, TheSystemsDaemonGoesBeforeAPrivateOneUnlessASocketIsNamed) {
  TestServer system([](const Request&, Responder responder) { responder.reply({200, "system"}); });
  DaemonPlaces where = places();
  where.system_socket = system.path();
  where.runtime_dir = folder_.path();
  where.socket.clear();
  Result<DaemonConnection> daemon = connect_or_start(where, start_);
  ASSERT_TRUE(daemon);
  EXPECT_FALSE(daemon->started);
  EXPECT_EQ(daemon->client.request("GET", "/")->body, "system");
  where.socket = places().socket;
  daemon = connect_or_start(where, start_);
  ASSERT_TRUE(daemon) << daemon.error().message;
  EXPECT_TRUE(daemon->started);
}

TEST_F(DaemonStartTest, AMachinesDaemonThatIsDownHasLeftSomethingBehind) {
  DaemonPlaces where{"", "", folder_ / "state", folder_ / "run.sock", folder_ / "system"};
  EXPECT_FALSE(system_is_down(where)) << "there never was one";
  ASSERT_TRUE(base::make_directories(folder_ / "system"));
  ASSERT_TRUE(base::write_atomic(folder_ / "system/meted.db", ""));
  EXPECT_TRUE(system_is_down(where));
  where.socket = folder_ / "mine";
  EXPECT_FALSE(system_is_down(where)) << "another one is meant";
  where.socket.clear();
  where.system_state.clear();
  EXPECT_FALSE(system_is_down(where));
  { const Fd killed = listen_plainly(where.system_socket); }
  EXPECT_TRUE(system_is_down(where));
}

TEST_F(DaemonStartTest, ThePrivateSocketIsInTheFirstFolderThatIsThere) {
  EXPECT_EQ(*private_socket({"/a/s", "/run/user/1", "/state", ""}), "/a/s");
  EXPECT_EQ(*private_socket({"", folder_.path(), "/state", ""}), folder_ / "mete/meted.sock");
  EXPECT_EQ(*private_socket({"", folder_ / "gone", "/state", ""}), "/state/run/meted.sock");
  EXPECT_EQ(*private_socket({"", "/proc/1", "/state", ""}),
            geteuid() == 0 ? "/proc/1/mete/meted.sock" : "/state/run/meted.sock");
  EXPECT_EQ(*private_socket({"", "", "/state", ""}), "/state/run/meted.sock");
  EXPECT_FALSE(private_socket({"relative", "", "/state", ""}));
  EXPECT_FALSE(private_socket({"", "", "/" + std::string(120, 's'), ""}));
}

TEST_F(DaemonStartTest, ADaemonIsFoundByItsStateFolder) {
  DaemonPlaces where = places();
  ASSERT_TRUE(connect_or_start(where, start_));
  const Result<Fd> told = write_address(where.state_dir, where.socket);
  ASSERT_TRUE(told) << told.error().message;
  where.socket.clear();  // as from cron, and with folders that lead elsewhere or are too long
  for (const std::string& runtime : {std::string(), folder_.path(), folder_ / "gone"}) {
    where.runtime_dir = runtime;
    const Result<DaemonConnection> daemon = connect_or_start(where, start_);
    ASSERT_TRUE(daemon) << daemon.error().message;
    EXPECT_FALSE(daemon->started);
  }
  EXPECT_EQ(daemons_ever().size(), 1u);
}

TEST_F(DaemonStartTest, ASocketThatIsNamedIsFollowedOnlyWhereItsDaemonWent) {
  DaemonPlaces where = places();
  ASSERT_TRUE(connect_or_start(where, start_));
  ASSERT_TRUE(write_address(where.state_dir, folder_ / "old/s"));
  const Result<Fd> told = write_address(where.state_dir, where.socket);
  ASSERT_TRUE(told);
  where.socket = folder_ / "old/s";
  EXPECT_TRUE(connect_daemon(where, {kLong}));
  where.socket = folder_ / "another/s";
  EXPECT_EQ(connect_daemon(where, {kLong}).error().code, ErrorCode::kNotFound);
}

TEST_F(DaemonStartTest, ADaemonThatListensNowhereIsWaitedForAndThenTold) {
  DaemonPlaces where = places();
  ASSERT_TRUE(base::make_directories(where.state_dir));
  where.socket.clear();
  const Result<Fd> told = write_address(where.state_dir, folder_ / "nowhere");
  ASSERT_TRUE(told);
  const Result<HttpClient> client = connect_daemon(where, {kLong, Milliseconds(100)});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kIo);
  EXPECT_NE(client.error().message.find("runs, but does not answer"), std::string::npos);
  EXPECT_EQ(connect_daemon(where, {kLong, Milliseconds(0)}).error().code, ErrorCode::kNotFound);
}

TEST_F(DaemonStartTest, TheDaemonGetsOnlyWhatItNeedsOfTheEnvironment) {
  EXPECT_EQ(daemon_environment({"PATH=/bin", "PATHOLOGY=1", "HOME=/h", "METE_SIM=x", "TERM=vt100",
                                "METE_READY_FD=7", "XDG_STATE_HOME=/s", "LD_PRELOAD=/evil.so",
                                "LD_LIBRARY_PATH=/l", "CUDA_VISIBLE_DEVICES=1", "LANG=C", "USER=u",
                                "AWS_SECRET=x"}),
            (std::vector<std::string>{"PATH=/bin", "HOME=/h", "METE_SIM=x", "XDG_STATE_HOME=/s",
                                      "LD_LIBRARY_PATH=/l", "CUDA_VISIBLE_DEVICES=1", "LANG=C",
                                      "USER=u"}));
}

TEST_F(DaemonStartTest, ThereAreNeverMoreThanTwoLogs) {
  for (int i = 0; i < 3; ++i) {
    Result<Fd> log = open_log(folder_.path());
    ASSERT_TRUE(log);
    struct stat info {};
    ASSERT_EQ(fstat(log->get(), &info), 0);
    EXPECT_EQ(info.st_size, 0) << "a full one was put aside";
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    ASSERT_EQ(ftruncate(log->get(), kMaxLogBytes + 1), 0);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()),
                          std::filesystem::directory_iterator()),
            2);
}

TEST(ReadyPipe, TellsSystemdThatItIsReady) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "@mete-ready-" + std::to_string(getpid());
  std::copy(name.begin() + 1, name.end(), address.sun_path + 1);  // an abstract socket
  const Fd systemd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  ASSERT_EQ(bind(systemd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(setenv("NOTIFY_SOCKET", name.c_str(), 1), 0);
  ReadyPipe ready = ReadyPipe::from_environment();
  EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
  ready.notify_ready();
  char text[64] = {};
  EXPECT_EQ(recv(systemd.get(), text, sizeof text, 0), 7);
  EXPECT_STREQ(text, "READY=1");
}

TEST(ReadyPipe, AMessageThatIsNotOneIsAnError) {
  EXPECT_TRUE(parse_ready("ready\n"));
  for (const std::string_view text :
       {"", "ready", "error\n", "error io\n", "error what\na\nb\nc\n", "error io\na\nb\nc\nd\n"})
    EXPECT_FALSE(parse_ready(text)) << text;
}

}  // namespace
}  // namespace mete::net
