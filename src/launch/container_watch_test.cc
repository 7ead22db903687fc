// SPDX-License-Identifier: Apache-2.0
#include "launch/container_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"

namespace mete::launch {
namespace {

std::string command(const char* line) {
  return container_command(base::split(line, ' ')).value_or("none");
}

TEST(ContainerCommand, NamesWhatStartsContainers) {
  EXPECT_EQ(command("docker run -it image"), "docker run");
  EXPECT_EQ(command("/usr/bin/docker --debug run image"), "docker run");
  EXPECT_EQ(command("docker -H tcp://a:1 --context b run image"), "docker run");
  EXPECT_EQ(command("docker --host=tcp://a:1 container run image"), "docker container run");
  EXPECT_EQ(command("podman --root /a run image"), "podman run");
  EXPECT_EQ(command("nerdctl -n k8s.io run image"), "nerdctl run");
  EXPECT_EQ(command("docker compose -f a.yml up -d"), "docker compose up");
  EXPECT_EQ(command("docker-compose -f a.yml up"), "docker-compose up");
  EXPECT_EQ(command("/usr/libexec/docker/cli-plugins/docker-compose compose up"),
            "docker-compose up");
}

TEST(ContainerCommand, LeavesEverythingElseAlone) {
  for (const char* line :
       {"", "docker", "docker ps", "docker exec a run", "docker build run", "docker compose down",
        "docker compose", "docker-compose", "python run", "mydocker run", "docker --context run"})
    EXPECT_EQ(command(line), "none") << line;
}

TEST(ContainerWatch, SaysNothingOfOrdinaryProcesses) {
  ContainerWatch watch;
  EXPECT_EQ(watch.look({getpid(), getppid(), 1, -1, 1 << 30}), std::nullopt);
}

}  // namespace
}  // namespace mete::launch
