// SPDX-License-Identifier: Apache-2.0
// The terminal of a job with --tty, and the socket by which users reach it (`mete attach`): a
// pseudo-terminal whose other end is the keeper's, and a Unix socket in the user's own folder. Any
// number of clients, up to kMaxClients, may read and type at once; a client that reads too slowly
// is disconnected. Nothing here blocks. The protocol is in docs/formats/keeper.md.
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

// The frames of a client. Input is cut into as many frames as it takes.
std::string input_frame(std::string_view bytes);
std::string window_frame(std::uint16_t rows, std::uint16_t columns);

// Paths longer than a socket's address are fine. not_found: no such job has a terminal; busy: its
// keeper is gone; denied: the socket does not belong to a job of `owner`. The folder belongs to
// that user, and root connects too: a link elsewhere, or a socket of another user, is not used.
Result<Fd> connect_terminal(const std::string& path, std::uint32_t owner);

class TerminalDoor {
 public:
  static constexpr std::size_t kMaxClients = 16;
  static constexpr std::size_t kRemembered = 32 << 10;  // shown to clients that attach later
  static constexpr std::size_t kMaxUnsent = 1 << 20;    // to one client
  static constexpr std::size_t kMaxUntyped = 64 << 10;  // that the program has not read yet

  // Makes the terminal, and the socket in place of an old one; only this user can connect.
  static Result<TerminalDoor> open(const std::string& socket);
  TerminalDoor(TerminalDoor&&) = default;
  TerminalDoor& operator=(TerminalDoor&&) = delete;
  ~TerminalDoor();  // removes the name, unless another socket has it by now

  // The program's end. We keep it open too: a terminal that no process has open would look ended.
  int terminal() const { return terminal_.get(); }

  // What to wait for; then the results, in that order. Returns what the program wrote.
  void listen(std::vector<pollfd>& list) const;
  std::string heard(std::span<const pollfd> list);
  // What is left, once the program has ended; clients get it too, as far as they can take it now.
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
  std::string last_;  // the last output
};

}  // namespace mete::launch
