// Tables as text.
#ifndef TUTTI_LAUNCH_TEXT_TABLE_H
#define TUTTI_LAUNCH_TEXT_TABLE_H

#include <string>
#include <vector>

namespace tutti::launch {

using Row = std::vector<std::string>;

/// The rows, the first of which is the head, in columns as wide as their widest cell. Columns of numbers (as the last
/// row has them) stand to the right, but the last column.
std::string table_of(const std::vector<Row>& rows);

/// A cell of comma-separated values, quoted where it must be (RFC 4180).
std::string csv_cell(const std::string& text);

}  // namespace tutti::launch

#endif
