// SPDX-License-Identifier: Apache-2.0
// The terminal of a job with --tty, and the door by which people come to it (`mete attach`): a
// pseudo-terminal whose other end is the keeper's, and a Unix socket in the user's own folder. Any
// number may look and type at once, up to kMaxClients; who reads too slowly is let go. Nothing here
// blocks. The protocol is in docs/formats/keeper.md.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"

namespace mete::launch {

// What is sent by who attaches. Input is cut into as many frames as it takes.
std::string input_frame(std::string_view bytes);
std::string window_frame(std::uint16_t rows, std::uint16_t columns);

// Paths longer than a socket's address are fine. not_found: no such job has a terminal; busy: its
// keeper is gone; denied: what is there is not the terminal of a job of `owner`. The folder is that
// user's, and root comes here too: what leads elsewhere, or is answered by another, is not used.
Result<Fd> connect_terminal(const std::string& path, std::uint32_t owner);

class TerminalDoor {
 public:
  static constexpr std::size_t kMaxClients = 16;
  static constexpr std::size_t kRemembered = 32 << 10;  // shown to who comes later
  static constexpr std::size_t kMaxUnsent = 1 << 20;    // to one client
  static constexpr std::size_t kMaxUntyped = 64 << 10;  // that the program has not taken yet

  // Makes the terminal, and the socket in place of what is there; only this user can connect.
  static Result<TerminalDoor> open(const std::string& socket);
  TerminalDoor(TerminalDoor&&) = default;
  TerminalDoor& operator=(TerminalDoor&&) = delete;
  ~TerminalDoor();  // the name goes, unless it is another socket's by now

  // The program's end. We keep ours of it too: a terminal that nobody has open would look ended.
  int terminal() const { return terminal_.get(); }

  // What to wait for; then what became of it, in the same order. Returns what the program wrote.
  void listen(std::vector<pollfd>& list) const;
  std::string heard(std::span<const pollfd> list);
  // What is left, once the program has ended; clients are given it too, as far as they take it now.
  std::string drain();

 private:
  struct Client {
    Fd socket;
    std::string received;  // less than a frame
    std::string unsent;
  };
  TerminalDoor(std::string path, Fd master, Fd terminal, Fd listener);

  std::string read_program();
  void show(std::string_view bytes);
  void accept_clients();
  void receive(Client& client);
  void understand(Client& client);
  void send_to(Client& client);
  void type();

  std::string path_;
  Fd master_;
  Fd terminal_;
  Fd listener_;
  std::optional<base::FileId> file_;  // of the socket
  std::vector<Client> clients_;
  std::string untyped_;
  std::string last_;  // what was shown
};

}  // namespace mete::launch
