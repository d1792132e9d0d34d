#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "comm/deadline.h"
#include "comm/mpi_communicator.h"
#include "tests/back_ends.h"
#include "tests/mpi_main.h"

namespace tutti::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tests::complete;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

/// A text that differs between routes and has `size` bytes.
std::string text_for(int from, int to, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + (i * 7 + static_cast<size_t>(from * 5 + to)) % 26);
  return text;
}

/// Every rank sends every rank, itself included, a message of `size` bytes.
void exchange_all(Communicator& communicator, size_t size) {
  const int count = communicator.size();
  std::vector<std::string> sent, received;
  for (int other = 0; other < count; ++other) {
    sent.push_back(text_for(communicator.rank(), other, size));
    received.push_back(std::string(size, '?'));
  }
  std::vector<std::unique_ptr<Pending>> pending;
  for (int other = 0; other < count; ++other) {
    const auto index = static_cast<size_t>(other);
    pending.push_back(communicator.send(bytes_of(std::as_const(sent[index])), other, 3));
    pending.push_back(communicator.receive(bytes_of(received[index]), other, 3));
  }
  for (const auto& each : pending) complete(*each);
  for (int other = 0; other < count; ++other) {
    EXPECT_EQ(received[static_cast<size_t>(other)], text_for(other, communicator.rank(), size)) << "from " << other;
  }
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

using CommunicatorTest = tests::OnBothBackEnds;
INSTANTIATE_TEST_SUITE_P(BackEnds, CommunicatorTest, tests::both_back_ends(), testing::PrintToStringParamName());

TEST_P(CommunicatorTest, EveryRankReachesEveryRankAndItself) {
  on_ranks([](Communicator& communicator) {
    for (const size_t size : {0, 1, 1000, 1'000'000}) exchange_all(communicator, size);
  });
}

TEST_P(CommunicatorTest, MessagesWithOneTagKeepTheirOrder) {
  on_ranks([](Communicator& communicator) {
    const int next = (communicator.rank() + 1) % communicator.size();
    const int previous = (communicator.rank() + communicator.size() - 1) % communicator.size();
    std::vector<int> sent(100), received(100, -1);
    std::vector<std::unique_ptr<Pending>> sends, receives;
    for (size_t i = 0; i < sent.size(); ++i) {
      sent[i] = static_cast<int>(i);
      sends.push_back(communicator.send(std::as_bytes(std::span(&sent[i], 1)), next, 5));
      receives.push_back(communicator.receive(std::as_writable_bytes(std::span(&received[i], 1)), previous, 5));
    }
    for (size_t i = sent.size(); i-- > 0;) complete(*receives[i]);  // the order of testing does not matter
    for (const auto& send : sends) complete(*send);
    EXPECT_EQ(received, sent);
  });
}

TEST_P(CommunicatorTest, TagsDoNotMix) {
  on_ranks([](Communicator& communicator) {
    const int self = communicator.rank();
    const std::string first = "first", second = "second";
    std::string found_first(first.size(), '?'), found_second(second.size(), '?');
    const auto send_first = communicator.send(bytes_of(first), self, 1);
    const auto send_second = communicator.send(bytes_of(second), self, 2);
    complete(*communicator.receive(bytes_of(found_second), self, 2));
    complete(*communicator.receive(bytes_of(found_first), self, 1));
    complete(*send_first);
    complete(*send_second);
    EXPECT_EQ(found_first, first);
    EXPECT_EQ(found_second, second);
  });
}

TEST_P(CommunicatorTest, ProbeFindsSourceAndSizeAndLeavesTheMessage) {
  on_ranks([](Communicator& communicator) {
    EXPECT_FALSE(communicator.probe(9).has_value());
    const std::string text = "seventeen bytes..";
    const auto send = communicator.send(bytes_of(text), communicator.rank(), 8);
    std::optional<Arrival> arrival;
    wait_until(
        {std::chrono::seconds(10), "probing"}, [&] { return (arrival = communicator.probe(8)).has_value(); },
        [] { return std::vector<int>(); });
    EXPECT_EQ(arrival->source, communicator.rank());
    ASSERT_EQ(arrival->size_bytes, 17);
    std::string received(17, '?');
    complete(*communicator.receive(bytes_of(received), arrival->source, 8));
    complete(*send);
    EXPECT_EQ(received, text);
  });
}

TEST_P(CommunicatorTest, MessageOfAnotherSizeIsAnErrorThatNamesRankTagAndSizes) {
  on_ranks([](Communicator& communicator) {
    const int self = communicator.rank();
    const std::string text = "12345678";
    for (const size_t size : {4, 16}) {
      std::string received(size, '?');
      const auto send = communicator.send(bytes_of(text), self, 11);
      const auto receive = communicator.receive(bytes_of(received), self, 11);
      EXPECT_THAT(message_of([&] { complete(*receive); }),
                  AllOf(HasSubstr("from rank " + std::to_string(self)), HasSubstr("tag 11"),
                        HasSubstr("expected " + std::to_string(size) + " bytes"),
                        HasSubstr(size < text.size() ? "found" : "found one of 8 bytes")));
      complete(*send);
    }
  });
}

TEST_P(CommunicatorTest, SendThatWasGivenUpIsStillDelivered) {
  on_ranks([](Communicator& communicator) {
    const std::string text = "given up";
    communicator.send(bytes_of(text), communicator.rank(), 4).reset();
    std::string received(text.size(), '?');
    complete(*communicator.receive(bytes_of(received), communicator.rank(), 4));
    EXPECT_EQ(received, text);
  });
}

TEST_P(CommunicatorTest, CountsPayloadBytesAndMessages) {
  on_ranks([](Communicator& communicator) {
    exchange_all(communicator, 1000);
    EXPECT_EQ(communicator.sent_messages(), communicator.size());
    EXPECT_EQ(communicator.sent_bytes(), 1000 * communicator.size());
  });
}

TEST_P(CommunicatorTest, RefusesAnotherThread) {
  on_ranks([](Communicator& communicator) {
    EXPECT_FALSE(communicator.probe(1).has_value());
    std::thread([&] {
      std::string text = "x";
      EXPECT_THROW(communicator.send(bytes_of(std::as_const(text)), 0, 1), std::logic_error);
      EXPECT_THROW(communicator.receive(bytes_of(text), 0, 1), std::logic_error);
      EXPECT_THROW(communicator.probe(1), std::logic_error);
    }).join();
  });
}

TEST(MpiCommunicatorTest, LongMessagesTravelInChunks) {
  for (const int64_t chunk_bytes : {1, 7, 64}) {
    MpiCommunicator communicator(tests::mpi_session(), chunk_bytes);
    for (const size_t size : {0, 1, 6, 7, 8, 14, 15, 24, 64, 65, 1000}) {
      SCOPED_TRACE(testing::Message() << "chunks of " << chunk_bytes << ", message of " << size << " bytes");
      exchange_all(communicator, size);
    }
  }
}

TEST(MpiCommunicatorTest, LongMessageOfAnotherSizeIsAnError) {
  const struct {
    size_t sent, expected;
  } cases[] = {{16, 8}, {24, 16}, {16, 24}, {8, 16}};  // chunks of 8: whole chunks are missing or left over
  for (const auto& [sent, expected] : cases) {
    SCOPED_TRACE(testing::Message() << sent << " bytes for a receive of " << expected);
    MpiCommunicator communicator(tests::mpi_session(), 8);
    const std::string text(sent, 'x');
    std::string received(expected, '?');
    const auto send = communicator.send(bytes_of(text), communicator.rank(), 2);
    const auto receive = communicator.receive(bytes_of(received), communicator.rank(), 2);
    EXPECT_THROW(complete(*receive), MpiError);
  }
}

TEST(MpiCommunicatorTest, RefusesImpossibleChunks) {
  EXPECT_THROW(MpiCommunicator(tests::mpi_session(), 0), std::invalid_argument);
  EXPECT_THROW(MpiCommunicator(tests::mpi_session(), MpiCommunicator::kChunkBytes + 1), std::invalid_argument);
}

TEST(MpiSessionTest, KnowsItsNode) {
  const MpiSession& session = tests::mpi_session();  // all ranks of a test are on one machine
  EXPECT_EQ(session.local_size(), session.size());
  EXPECT_EQ(session.local_rank(), session.rank());
}

TEST(MpiSessionTest, NamesTheLibrary) {
  EXPECT_THAT(mpi_library_version(), testing::ContainsRegex("[A-Za-z].*[0-9]"));
  EXPECT_THAT(mpi_library_version(), testing::Not(HasSubstr(",")));
}

TEST(MpiSessionTest, RefusesSeparateJobsStartedBySrun) {
  EXPECT_THAT(message_of([] { check_launch({.slurm_step_task_count = 4, .under_mpirun = false}, 1); }),
              AllOf(HasSubstr("4 ranks"), HasSubstr("srun --mpi=pmix")));
  EXPECT_NO_THROW(check_launch({.slurm_step_task_count = 4, .under_mpirun = false}, 4));
  EXPECT_NO_THROW(check_launch({.slurm_step_task_count = 4, .under_mpirun = true}, 1));
  EXPECT_NO_THROW(check_launch({.slurm_step_task_count = 1, .under_mpirun = false}, 1));
  EXPECT_NO_THROW(check_launch({.slurm_step_task_count = std::nullopt, .under_mpirun = false}, 1));
}

TEST(MpiErrorTest, NamesTheFailure) {
  constexpr int kAnyFailure = 1;
  EXPECT_THAT(message_of([] { check_mpi(kAnyFailure); }),
              AllOf(HasSubstr("MPI failed"), HasSubstr("communicator_test.cpp")));
  EXPECT_NO_THROW(check_mpi(0));
}

}  // namespace
}  // namespace tutti::comm
