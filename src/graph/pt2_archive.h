// An archive of torch.export.save (.pt2): its program's JSON and its weights.
#ifndef TUTTI_SRC_GRAPH_PT2_ARCHIVE_H
#define TUTTI_SRC_GRAPH_PT2_ARCHIVE_H

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace caffe2::serialize {
class PyTorchStreamReader;
}

namespace tutti::graph {

/// A tensor of an archive. Tensors of one file share their storage.
struct Pt2Weight {
  std::string name;  ///< in the state dict
  at::Tensor tensor;
  std::string path;  ///< of the file that holds its storage
  bool requires_grad = false;
};

/// Move-only. Nothing that the archive claims is believed: memory stays within the file's size and a few times the
/// limits of bounded_json.h. Every fault is a GraphError which names the file, the member, what was expected and found.
class Pt2Archive {
 public:
  explicit Pt2Archive(std::filesystem::path file);
  Pt2Archive(Pt2Archive&&) noexcept;
  ~Pt2Archive();

  /// The JSON of the only program, or of the one named "model".
  nlohmann::json program();

  /// Parameters and persistent buffers by state-dict name.
  std::vector<Pt2Weight> weights();
  /// Tensor constants and buffers that are not saved.
  std::vector<Pt2Weight> constants();

 private:
  [[noreturn]] void fail(const std::string& member, const std::string& fault) const;
  std::string text(const std::string& member);
  nlohmann::json json(const std::string& member);
  void expect_text(const std::string& member, const std::string& expected);
  std::vector<Pt2Weight> tensors(const std::string& folder, const std::string& config);
  /// The bytes of a file, as a tensor of bytes.
  at::Tensor storage(const std::string& member);

  std::filesystem::path file_;
  std::map<std::string, int64_t> sizes_;  ///< of members, by name without the root folder
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

}  // namespace tutti::graph

#endif
