#include "comm/mpi_communicator.h"

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <vector>

namespace tutti::comm {
namespace {

/// What goes before the chunks of a long message.
struct Notice {
  static constexpr uint64_t kMark = 0x7475747469636875;
  uint64_t mark = kMark;
  int64_t size_bytes = 0;
};

std::byte* as_bytes_of(Notice& notice) { return reinterpret_cast<std::byte*>(&notice); }

/// The MPI requests of one message.
class MpiPending : public Pending {
 public:
  explicit MpiPending(const ThreadCheck& thread) : thread_(thread) {}
  MpiPending(const MpiPending&) = delete;

  ~MpiPending() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      if (cancels_) MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }

  bool test() override {
    thread_.check("Pending::test");
    for (; next_ < requests_.size(); ++next_) {
      int done = 0;
      MPI_Status status;
      const int code = MPI_Test(&requests_[next_], &done, &status);
      if (code != MPI_SUCCESS) fail(code);
      if (done == 0) return false;
      completed(next_, status);
    }
    return true;
  }

 protected:
  std::vector<MPI_Request> requests_;
  bool cancels_ = false;  // a send that was given up is still delivered

 private:
  virtual void completed(size_t, const MPI_Status&) {}
  [[noreturn]] virtual void fail(int code) {
    check_mpi(code);
    std::abort();
  }

  const ThreadCheck& thread_;
  size_t next_ = 0;
};

/// Calls `transfer(offset, count)` for each chunk.
template <typename Transfer>
void for_each_chunk(int64_t size_bytes, int64_t chunk_bytes, Transfer transfer) {
  int64_t offset = 0;
  do {
    const int64_t count = std::min(chunk_bytes, size_bytes - offset);
    transfer(offset, static_cast<int>(count));
    offset += count;
  } while (offset < size_bytes);
}

/// One message between this rank and another.
struct Route {
  MPI_Comm communicator;
  int rank;
  int tag;
  int64_t chunk_bytes;
};

class MpiSend final : public MpiPending {
 public:
  MpiSend(const ThreadCheck& thread, const Route& route, std::span<const std::byte> bytes) : MpiPending(thread) {
    const auto size = static_cast<int64_t>(bytes.size());
    const auto start = [&](const std::byte* data, int count) {
      check_mpi(MPI_Isend(data, count, MPI_BYTE, route.rank, route.tag, route.communicator,
                          &requests_.emplace_back(MPI_REQUEST_NULL)));
    };
    notice_.size_bytes = size;
    if (size > route.chunk_bytes) start(as_bytes_of(notice_), sizeof(Notice));
    for_each_chunk(size, route.chunk_bytes, [&](int64_t offset, int count) { start(bytes.data() + offset, count); });
  }

 private:
  Notice notice_;
};

class MpiReceive final : public MpiPending {
 public:
  MpiReceive(const ThreadCheck& thread, const Route& route, std::span<std::byte> bytes)
      : MpiPending(thread), from_(route.rank), tag_(route.tag), size_bytes_(static_cast<int64_t>(bytes.size())) {
    cancels_ = true;
    const auto start = [&](std::byte* data, int count) {
      expected_.push_back(count);
      check_mpi(MPI_Irecv(data, count, MPI_BYTE, route.rank, route.tag, route.communicator,
                          &requests_.emplace_back(MPI_REQUEST_NULL)));
    };
    is_long_ = size_bytes_ > route.chunk_bytes;
    if (is_long_) start(as_bytes_of(notice_), sizeof(Notice));
    for_each_chunk(size_bytes_, route.chunk_bytes,
                   [&](int64_t offset, int count) { start(bytes.data() + offset, count); });
  }

 private:
  void completed(size_t index, const MPI_Status& status) override {
    int found = 0;
    check_mpi(MPI_Get_count(&status, MPI_BYTE, &found));
    if (found != expected_[index]) refuse(MPI_ERR_COUNT, fmt::format("one of {} bytes", found));
    if (!is_long_ || index > 0) return;
    if (notice_.mark != Notice::kMark) refuse(MPI_ERR_COUNT, fmt::format("one of {} bytes", found));
    if (notice_.size_bytes != size_bytes_) refuse(MPI_ERR_COUNT, fmt::format("one of {} bytes", notice_.size_bytes));
  }

  [[noreturn]] void fail(int code) override {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    if (error_class == MPI_ERR_TRUNCATE) refuse(code, "a longer one");
    check_mpi(code);
    std::abort();
  }

  [[noreturn]] void refuse(int code, const std::string& found) const {
    throw MpiError(code, fmt::format("Message from rank {} with tag {}: expected {} bytes, found {}. The ranks do not "
                                     "run the same job; start all of them with the same program and job file.",
                                     from_, tag_, size_bytes_, found));
  }

  int from_;
  int tag_;
  int64_t size_bytes_;
  bool is_long_ = false;
  Notice notice_;
  std::vector<int> expected_;
};

}  // namespace

struct MpiCommunicator::State {
  const ThreadCheck& thread;
  int64_t chunk_bytes;
  int uncaught_exception_count = std::uncaught_exceptions();
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  int64_t sent_bytes = 0;
  int64_t sent_messages = 0;

  Route route(int other, int tag) const { return {communicator, other, tag, chunk_bytes}; }
};

MpiCommunicator::MpiCommunicator(const MpiSession& session, int64_t chunk_bytes)
    : state_(std::make_unique<State>(State{session.thread(), chunk_bytes})) {
  state_->thread.check("MpiCommunicator");
  if (chunk_bytes < 1 || chunk_bytes > kChunkBytes) {
    throw std::invalid_argument(fmt::format("Chunk size: expected 1 to {} bytes, found {}", kChunkBytes, chunk_bytes));
  }
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &state_->communicator));
  check_mpi(MPI_Comm_rank(state_->communicator, &state_->rank));
  check_mpi(MPI_Comm_size(state_->communicator, &state_->size));
}

MpiCommunicator::~MpiCommunicator() {
  // Freeing is collective: a rank that leaves by an error would wait here for the others.
  if (std::uncaught_exceptions() == state_->uncaught_exception_count) MPI_Comm_free(&state_->communicator);
}

int MpiCommunicator::rank() const { return state_->rank; }

int MpiCommunicator::size() const { return state_->size; }

int MpiCommunicator::greatest_tag() const {
  state_->thread.check("Communicator::greatest_tag");
  void* value = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found));
  constexpr int kPromisedByTheStandard = 32'767;
  return found != 0 ? *static_cast<int*>(value) : kPromisedByTheStandard;
}

std::unique_ptr<Pending> MpiCommunicator::send(std::span<const std::byte> bytes, int to, int tag) {
  state_->thread.check("Communicator::send");
  auto pending = std::make_unique<MpiSend>(state_->thread, state_->route(to, tag), bytes);
  state_->sent_bytes += static_cast<int64_t>(bytes.size());
  ++state_->sent_messages;
  return pending;
}

std::unique_ptr<Pending> MpiCommunicator::receive(std::span<std::byte> bytes, int from, int tag) {
  state_->thread.check("Communicator::receive");
  return std::make_unique<MpiReceive>(state_->thread, state_->route(from, tag), bytes);
}

std::optional<Arrival> MpiCommunicator::probe(int tag) {
  state_->thread.check("Communicator::probe");
  int found = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, state_->communicator, &found, &status));
  if (found == 0) return std::nullopt;
  int size_bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &size_bytes));
  return Arrival{status.MPI_SOURCE, size_bytes};
}

void MpiCommunicator::abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

int64_t MpiCommunicator::sent_bytes() const { return state_->sent_bytes; }

int64_t MpiCommunicator::sent_messages() const { return state_->sent_messages; }

}  // namespace tutti::comm
