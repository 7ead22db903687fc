// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/fd.h"

namespace mete::base {
namespace {

TEST(Process, ReadsItsEnvironment) {
  (void)setenv("METE_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(variable("METE_TEST_VARIABLE"), "a=b");
  const std::vector<std::string> all = own_environment();
  EXPECT_EQ(std::count(all.begin(), all.end(), "METE_TEST_VARIABLE=a=b"), 1);
  (void)unsetenv("METE_TEST_VARIABLE");
  EXPECT_EQ(variable("METE_TEST_VARIABLE"), "");
}

TEST(Process, KnowsItsMachineAndItsHome) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_TRUE(host_name().starts_with(short_host_name()));
  EXPECT_EQ(short_host_name().find('.'), std::string::npos);
  const std::string before = variable("HOME");
  (void)setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(home_folder(), "/somewhere");
  (void)setenv("HOME", before.c_str(), 1);
}

TEST(Process, PointersEndWithANullPointer) {
  const std::vector<std::string> texts{"a", ""};
  const std::vector<char*> list = pointers(texts);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0], texts[0].c_str());
  EXPECT_EQ(list[1], texts[1].c_str());
  EXPECT_EQ(list[2], nullptr);
  EXPECT_EQ(pointers({}).size(), 1u);
}

TEST(WriteAll, WaitsForRoomInAPipe) {
  Pipe pipe = *make_pipe();
  ASSERT_EQ(fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK), 0);
  const std::string much(1 << 20, 'x');  // more than a pipe holds
  std::size_t got = 0;
  std::thread reader([&] {
    char buffer[65536];
    for (ssize_t bytes = 0; (bytes = read(pipe.read.get(), buffer, sizeof buffer)) > 0;)
      got += static_cast<std::size_t>(bytes);
  });
  EXPECT_TRUE(write_all(pipe.write.get(), much));
  pipe.write.reset();
  reader.join();
  EXPECT_EQ(got, much.size());
}

TEST(ReadAndWriteAt, AllOrNothing) {
  char path[] = "/tmp/mete-fd-test-XXXXXX";
  const Fd file(mkstemp(path));
  (void)unlink(path);
  EXPECT_TRUE(write_at(file.get(), "data", 2));
  char bytes[4] = {};
  EXPECT_TRUE(read_at(file.get(), bytes, sizeof bytes, 2));
  EXPECT_EQ(std::string_view(bytes, sizeof bytes), "data");
  EXPECT_FALSE(read_at(file.get(), bytes, sizeof bytes, 3));
  EXPECT_EQ(errno, EIO) << "the file ends";
  EXPECT_FALSE(write_at(-1, "x", 0));
}

TEST(WriteAll, SaysWhyNot) {
  EXPECT_FALSE(write_all(-1, "x"));
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(write_all(-1, ""));
}

}  // namespace
}  // namespace mete::base
