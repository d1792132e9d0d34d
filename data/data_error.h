// The error of everything that reads or writes data files.
#ifndef TUTTI_DATA_DATA_ERROR_H
#define TUTTI_DATA_DATA_ERROR_H

#include <stdexcept>

namespace tutti::data {

/// A fault of a data set (missing or cut file, wrong type, label out of range): the end of the models that read it, and
/// of nothing else. The message names the file, and the row where there is one.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tutti::data

#endif
