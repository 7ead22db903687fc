// SPDX-License-Identifier: Apache-2.0
// SQLite's C interface as values: a connection and its prepared statements, each closed by its
// owner, and every result code turned into an Error that names the file. Does not know our tables.
// One thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mete::store {

// What a result code other than OK, ROW and DONE means for us:
//   exhausted  the disk or the quota is full; the operation can be retried
//   busy       another process has the file open
//   denied     we may not write it
//   corrupt    not a database, or a broken one
//   io         everything else: do not go on, since the content of the disk is unknown
Error to_error(sqlite3* connection, int code, std::string_view what);

class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}

  // Parameters count from 1. Text is borrowed until the statement is reset.
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, std::string_view text);
  void bind_blob(int parameter, std::string_view bytes);
  // True: there is a row. False: done.
  Result<bool> step();
  // For statements without rows: one step, then reset.
  Result<void> run();
  void reset();

  // Columns count from 0; only while there is a row.
  std::int64_t number(int column) const;
  std::string text(int column) const;
  std::string blob(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int bind_code_ = SQLITE_OK;  // the first failure of bind(); step() reports it
};

// Resets a statement at the end of a scope: a statement with unread rows would keep the log from
// starting over.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;
  ~ResetAtEnd() { statement_.reset(); }

 private:
  Statement& statement_;
};

class Connection {
 public:
  // An existing file; refuses a symbolic link anywhere in the path. Never waits for a lock.
  static Result<Connection> open(const std::string& path);

  Result<void> run(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  // First column of the first row, which must exist.
  Result<std::int64_t> number(std::string_view sql);
  Result<std::string> text(std::string_view sql);

  sqlite3* get() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  explicit Connection(sqlite3* handle) : handle_(handle) {}

  std::unique_ptr<sqlite3, Close> handle_;
};

// A write transaction that is rolled back unless it was committed.
class Transaction {
 public:
  static Result<Transaction> begin(Connection& connection);
  Transaction(Transaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  // After a failure the destructor still has to roll the transaction back.
  Result<void> commit();

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

}  // namespace mete::store
