// The wrapper of HDF5 against files that the library itself wrote, and its errors.
#include "data/hdf5_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <type_traits>

#include "tests/shard_files.h"

namespace tutti::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

static_assert(std::is_nothrow_move_constructible_v<Hdf5Handle> && !std::is_copy_constructible_v<Hdf5Handle>);
static_assert(std::is_nothrow_move_constructible_v<Hdf5File> && !std::is_copy_constructible_v<Hdf5File>);

// A data set of 4 x 3 elements 0, 1, 2, ... in a new file, by plain calls of the library.
void write_plain(const std::filesystem::path& path, hid_t stored_type, H5D_layout_t layout = H5D_CONTIGUOUS) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t extents[] = {4, 3};
  const hid_t space = H5Screate_simple(2, extents, nullptr);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_layout(properties, layout);
  if (layout == H5D_CHUNKED) H5Pset_chunk(properties, 2, extents);
  const hid_t dataset = H5Dcreate2(file, "x", stored_type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  std::vector<int32_t> values(12);
  for (int32_t i = 0; i < 12; ++i) values[static_cast<size_t>(i)] = i;
  H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 8);
  const hsize_t count[] = {2};
  const hid_t list = H5Screate_simple(1, count, nullptr);
  const hid_t attribute = H5Acreate2(dataset, "names", text, list, H5P_DEFAULT, H5P_DEFAULT);
  const char names[2][8] = {"cat", "a dog"};
  H5Awrite(attribute, text, names);
  H5Aclose(attribute);
  H5Sclose(list);
  H5Tclose(text);
  H5Dclose(dataset);
  H5Pclose(properties);
  H5Sclose(space);
  H5Fclose(file);
}

TEST(Hdf5File, ReadsWhatTheLibraryWrote) {
  const TemporaryFolder folder;
  for (const H5D_layout_t layout : {H5D_CONTIGUOUS, H5D_CHUNKED}) {
    write_plain(folder / "a.h5", H5T_STD_I16LE, layout);
    const Hdf5File file = Hdf5File::open(folder / "a.h5");
    EXPECT_EQ(file.names_in("/"), std::vector<std::string>{"x"});
    const Hdf5Dataset dataset = file.open_dataset("/x");
    EXPECT_EQ(dataset.type(), ElementType::kInt16);
    EXPECT_EQ(dataset.shape(), (std::vector<int64_t>{4, 3}));
    EXPECT_EQ(dataset.offset_bytes().has_value(), layout == H5D_CONTIGUOUS);
    EXPECT_EQ(dataset.text_list_attribute("names"), (std::vector<std::string>{"cat", "a dog"}));
    std::vector<int16_t> values(6);
    dataset.read_rows(1, 2, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, (std::vector<int16_t>{3, 4, 5, 6, 7, 8}));
  }
}

TEST(Hdf5File, SwapsForeignByteOrderAndDoesNotMapIt) {
  const TemporaryFolder folder;
  write_plain(folder / "a.h5", H5T_STD_I32BE);
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  const Hdf5Dataset dataset = file.open_dataset("/x");
  EXPECT_FALSE(dataset.offset_bytes().has_value());
  std::vector<int32_t> values(3);
  dataset.read_rows(3, 1, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, (std::vector<int32_t>{9, 10, 11}));
}

TEST(Hdf5File, NamesATypeItDoesNotKnow) {
  const TemporaryFolder folder;
  write_plain(folder / "a.h5", H5T_STD_U32LE);
  EXPECT_THAT(message_of<Hdf5Error>([&] { Hdf5File::open(folder / "a.h5").open_dataset("/x").type(); }),
              AllOf(HasSubstr("a.h5:/x"), HasSubstr("expected elements of uint8"), HasSubstr("integers of 4 bytes")));
}

TEST(Hdf5File, TellsWhereAlignedRowsLie) {
  const TemporaryFolder folder;
  const int64_t shape[] = {1000, 3};
  std::vector<int32_t> values(3000);
  for (int32_t i = 0; i < 3000; ++i) values[static_cast<size_t>(i)] = i * i;
  {
    Hdf5File file = Hdf5File::create(folder / "a.h5");
    file.create_dataset("first", ElementType::kInt32, shape);
    file.create_dataset("second", ElementType::kInt32, shape).write_rows(0, 1000, std::as_bytes(std::span(values)));
    file.close();
  }
  const int64_t offset = Hdf5File::open(folder / "a.h5").open_dataset("second").offset_bytes().value();
  EXPECT_EQ(offset % 4096, 0);
  std::ifstream in(folder / "a.h5", std::ios::binary);
  in.seekg(offset);
  std::vector<int32_t> found(3000);
  in.read(reinterpret_cast<char*>(found.data()), 12000);
  EXPECT_EQ(found, values);
}

TEST(Hdf5File, KeepsAttributes) {
  const TemporaryFolder folder;
  std::vector<std::string> many;
  for (int i = 0; i < 20000; ++i) many.push_back("class number " + std::to_string(i));
  {
    Hdf5File file = Hdf5File::create(folder / "a.h5");
    file.write_attribute("count", int64_t{1} << 40);
    file.write_attribute("means", std::vector<double>{0.1, -2.5e300});
    file.write_attribute("text", std::string("größer"));
    file.write_attribute("many", many);
  }
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  EXPECT_EQ(file.integer_attribute("count"), int64_t{1} << 40);
  EXPECT_EQ(file.number_attribute("means"), (std::vector<double>{0.1, -2.5e300}));
  EXPECT_EQ(file.text_attribute("text"), "größer");
  EXPECT_EQ(file.text_list_attribute("many"), many);
  EXPECT_FALSE(file.has_attribute("other"));
  EXPECT_THAT(message_of<Hdf5Error>([&] { file.integer_attribute("means"); }), HasSubstr("expected one number"));
  EXPECT_THAT(message_of<Hdf5Error>([&] { file.text_attribute("count"); }), HasSubstr("expected text"));
}

TEST(Hdf5File, RefusesTextOfVariableLength) {
  const TemporaryFolder folder;
  const hid_t file = H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, H5T_VARIABLE);
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(file, "format", text, space, H5P_DEFAULT, H5P_DEFAULT);
  const char* value = "tutti";
  H5Awrite(attribute, text, &value);
  H5Aclose(attribute);
  const hsize_t extents[] = {1};
  const hid_t list = H5Screate_simple(1, extents, nullptr);
  H5Dclose(H5Dcreate2(file, "x", text, list, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(list);
  H5Sclose(space);
  H5Tclose(text);
  H5Fclose(file);
  const Hdf5File opened = Hdf5File::open(folder / "a.h5");
  EXPECT_THAT(message_of<Hdf5Error>([&] { opened.text_attribute("format"); }),
              AllOf(HasSubstr("a.h5: attribute 'format': expected text of fixed width, found variable length"),
                    HasSubstr("`tutti shard`")));
  EXPECT_THAT(message_of<Hdf5Error>([&] { opened.open_dataset("/x").type(); }),
              AllOf(HasSubstr("a.h5:/x: expected elements of"), HasSubstr("found another type")));
}

TEST(Hdf5File, NamesAFilterThatTheLibraryLacks) {
  const TemporaryFolder folder;
  const hid_t file = H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t extents[] = {4};
  const hid_t space = H5Screate_simple(1, extents, nullptr);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(properties, 1, extents);
  H5Pset_deflate(properties, 4);
  H5Dclose(H5Dcreate2(file, "gzip", H5T_NATIVE_INT32, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pset_filter(properties, 32015, H5Z_FLAG_OPTIONAL, 0, nullptr);  // Zstandard's number in the registry of filters
  H5Dclose(H5Dcreate2(file, "zstd", H5T_NATIVE_INT32, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pclose(properties);
  H5Sclose(space);
  H5Fclose(file);
  const Hdf5File opened = Hdf5File::open(folder / "a.h5");
  EXPECT_NO_THROW(opened.open_dataset("/gzip").check_filters());
  EXPECT_THAT(message_of<Hdf5Error>([&] { opened.open_dataset("/zstd").check_filters(); }),
              AllOf(HasSubstr("a.h5:/zstd"), HasSubstr("filter 32015"), HasSubstr("gzip")));
}

TEST(Hdf5File, TellsObjectActionAndReasonOfAFailure) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<Hdf5Error>([&] { Hdf5File::open(folder / "none.h5"); }),
              AllOf(HasSubstr("none.h5: cannot open"), HasSubstr("No such file"), Not(HasSubstr("::"))));
  write_plain(folder / "a.h5", H5T_STD_I16LE);
  EXPECT_THAT(message_of<Hdf5Error>([&] { Hdf5File::create(folder / "a.h5"); }), HasSubstr("a.h5: cannot create"));
  const Hdf5File file = Hdf5File::open(folder / "a.h5");
  EXPECT_THAT(message_of<Hdf5Error>([&] { file.open_dataset("/y"); }), HasSubstr("a.h5:/y: cannot open"));
  std::vector<std::byte> bytes(6);
  EXPECT_THAT(message_of<Hdf5Error>([&] { file.open_dataset("/x").read_rows(3, 2, bytes); }),
              HasSubstr("rows [3, 5) of 4"));
}

}  // namespace
}  // namespace tutti::data
