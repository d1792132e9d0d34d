// The models' reports on their way to rank 0, while a job runs.
#ifndef TUTTI_LAUNCH_REPORT_EXCHANGE_H
#define TUTTI_LAUNCH_REPORT_EXCHANGE_H

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "comm/communicator.h"

namespace tutti::launch {

/// Every rank's reports reach rank 0 at most once per interval; nothing blocks. Used by the communication thread.
class ReportExchange {
 public:
  using Make = std::function<nlohmann::json()>;
  using Show = std::function<void(const nlohmann::json& reports)>;

  /// `make` gives this rank's reports; `show` takes any rank's, on rank 0.
  ReportExchange(comm::Communicator& communicator, int tag, std::chrono::duration<double> interval, Make make,
                 Show show);

  /// Sends or shows what is due, and receives what has come.
  void poll();

  /// No further reports leave this rank. True once the last one has left.
  bool finish_sending();

 private:
  void receive();

  comm::Communicator& communicator_;
  int tag_;
  std::chrono::duration<double> interval_;
  Make make_;
  Show show_;
  std::chrono::steady_clock::time_point last_;
  bool finishing_ = false;
  std::string outgoing_text_, incoming_text_;
  std::unique_ptr<comm::Pending> outgoing_, incoming_;  // after the texts they work on
};

}  // namespace tutti::launch

#endif
