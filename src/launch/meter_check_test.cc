// SPDX-License-Identifier: Apache-2.0
// Which libraries are accepted as the meter. The tests write small ELF files byte by byte: whole
// ones, cut ones, for another machine, without the note, with notes that lie about their size, for
// other versions of grant files. Each rejected file must name its reason, and none may crash the
// check. Paths that LD_PRELOAD cannot hold are rejected too.
#include "launch/meter_check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "launch/test/small_library.h"

namespace mete::launch {
namespace {

class MeterCheckTest : public testing::Test {
 protected:
  MeterCheckTest() {
    std::string name = testing::TempDir() + "mete-check-XXXXXX";
    root_ = mkdtemp(name.data());
    write("libmete.so", SmallLibrary());
    write("libmete-cuda.so", SmallLibrary());
  }
  ~MeterCheckTest() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return base::join_path(root_, name); }
  void write(const std::string& name, const SmallLibrary& library, std::size_t bytes = SIZE_MAX) {
    const std::string_view all(reinterpret_cast<const char*>(&library), sizeof library);
    ASSERT_TRUE(base::write_atomic(path(name), std::string(all.substr(0, bytes)), 0755).ok());
  }
  // "": it would be loaded.
  std::string trouble(const std::string& meter = "libmete.so") const {
    const Result<void> checked = check_meter({path(meter), path("libmete-cuda.so")});
    if (checked) return "";
    EXPECT_EQ(checked.error().code, ErrorCode::kBusy);
    return checked.error().evidence;
  }

  std::string root_;
};

TEST_F(MeterCheckTest, AMeterThatWouldBeLoaded) { EXPECT_EQ(trouble(), ""); }

TEST_F(MeterCheckTest, OneThatIsGone) {
  std::filesystem::rename(path("libmete.so"), path("elsewhere"));
  EXPECT_EQ(trouble(), path("libmete.so") + ": No such file or directory");
  std::filesystem::rename(path("elsewhere"), path("libmete.so"));
  EXPECT_EQ(trouble(), "");
}

TEST_F(MeterCheckTest, ACompanionThatIsGone) {
  std::filesystem::remove(path("libmete-cuda.so"));
  EXPECT_EQ(trouble(), path("libmete-cuda.so") + ": No such file or directory");
}

TEST_F(MeterCheckTest, WhatIsNoLibrary) {
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(trouble("folder"), path("folder") + ": it is not a file");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(trouble("pipe"), path("pipe") + ": it is not a file");
  ASSERT_TRUE(base::write_atomic(path("text"), "#!/bin/sh\n").ok());
  EXPECT_EQ(trouble("text"), path("text") + ": it is not a library for this machine");
  ASSERT_TRUE(base::write_atomic(path("empty"), "").ok());
  EXPECT_EQ(trouble("empty"), path("empty") + ": it is not a library for this machine");
}

TEST_F(MeterCheckTest, OneForAnotherMachine) {
  SmallLibrary other;
  other.header.e_machine = EM_RISCV;
  write("libmete.so", other);
  EXPECT_EQ(trouble(), path("libmete.so") + ": it is not a library for this machine");
}

TEST_F(MeterCheckTest, OneThatIsCutOffAnywhere) {
  for (std::size_t bytes = 0; bytes < sizeof(SmallLibrary); bytes += 4) {
    write("libmete.so", SmallLibrary(), bytes);
    EXPECT_NE(trouble(), "") << bytes << " bytes";
  }
}

TEST_F(MeterCheckTest, ALibraryThatIsNotTheMeter) {
  SmallLibrary other;
  other.name[0] = 'M';
  write("libmete.so", other);
  EXPECT_EQ(trouble(), path("libmete.so") + ": it is not mete's meter, or a very old one");
}

TEST_F(MeterCheckTest, AMeterForOtherGrantFiles) {
  SmallLibrary other;
  other.note.grant_major = abi::kGrantMajor + 1;
  write("libmete.so", other);
  EXPECT_NE(trouble().find("it reads grant files of version 2"), std::string::npos);
  SmallLibrary newer;  // also reads the version that we write
  newer.note.grant_minor = abi::kGrantMinor + 1;
  write("libmete.so", newer);
  EXPECT_EQ(trouble(), "");
}

TEST_F(MeterCheckTest, NotesThatLieAboutTheirSize) {
  for (const std::uint32_t size : {0u, 3u, 5u, 4096u, UINT32_MAX}) {
    SmallLibrary other;
    other.first.n_descsz = size;
    other.ours.n_namesz = size;
    write("libmete.so", other);
    (void)trouble();  // any answer; it must not crash
  }
}

TEST_F(MeterCheckTest, APathThatLdPreloadCannotHold) {
  for (const char* name : {"a b.so", "a:b.so", "$LIB.so"}) {
    write(name, SmallLibrary());
    EXPECT_NE(trouble(name).find("LD_PRELOAD cannot hold"), std::string::npos) << name;
  }
  EXPECT_FALSE(check_meter({}).ok());
  EXPECT_FALSE(check_meter({"libmete.so"}).ok());
}

TEST_F(MeterCheckTest, OneThatThisUserMayNotRead) {
  ASSERT_EQ(chmod(path("libmete.so").c_str(), 0), 0);
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  const bool root = geteuid() == 0;  // root may read everything
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const std::string seen = trouble();
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(seen, path("libmete.so") + ": Permission denied");
}

}  // namespace
}  // namespace mete::launch
