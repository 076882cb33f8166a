#include "kolo/torch/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "base/files.h"
#include "kolo/error.h"
#include "train/data/csv.h"
#include "train/data/gzip.h"
#include "train/data/idx.h"

namespace kolo {
namespace {

using testing::HasSubstr;

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

template <class F>
std::string error_of(ErrorCode code, F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

std::string small_idx() {
  // 2 x 3 numbers of 16 bits: 1 2 3 -1 -2 256.
  return {"\0\0\x0b\x02\0\0\0\x02\0\0\0\x03\0\x01\0\x02\0\x03\xff\xff\xff\xfe\x01\0", 24};
}

class InFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_.path() / name, std::ios::binary) << bytes;
    return dir_.path() / name;
  }
  TempDir dir_;
};

using Idx = InFile;
TEST_F(Idx, KeepsTypeAndShape) {
  for (const auto& bytes : {small_idx(), gzip(small_idx())}) {
    torch::Tensor tensor = read_idx(write("a", bytes));
    EXPECT_EQ(tensor.scalar_type(), torch::kInt16);
    EXPECT_TRUE(tensor.equal(torch::tensor({{1, 2, 3}, {-1, -2, 256}}, torch::kInt16)));
  }
}

TEST_F(Idx, NamesWhatIsWrong) {
  auto corrupt = [&](const std::string& bytes) {
    auto path = write("bad", bytes);
    return error_of(ErrorCode::corruption, [&] { (void)read_idx(path); });
  };
  const std::string good = small_idx(), packed = gzip(good);
  EXPECT_THAT(corrupt(good.substr(0, 20)),
              HasSubstr("bad: truncated: the header announces 12 bytes of elements, 8 follow"));
  EXPECT_THAT(corrupt(good + "x"), HasSubstr("too long"));
  EXPECT_THAT(corrupt(good.substr(0, 9)), HasSubstr("ends inside its header"));
  EXPECT_THAT(corrupt("hello"), HasSubstr("not an IDX file"));
  EXPECT_THAT(corrupt(std::string("\0\0\x07\x01\0\0\0\0", 8)), HasSubstr("0x07"));
  EXPECT_THAT(corrupt(packed.substr(0, packed.size() / 2)), HasSubstr("ends too early"));
  std::string damaged = packed;
  damaged[damaged.size() / 2] ^= 0x55;
  corrupt(damaged);
  std::string huge("\0\0\x0e\x04", 4);
  huge += std::string(16, '\xff');
  EXPECT_THAT(corrupt(huge), HasSubstr("larger than any file"));
  error_of(ErrorCode::not_found, [&] { (void)read_idx(dir_.path() / "none"); });
}

using Csv = InFile;
TEST_F(Csv, ReadsNumbers) {
  CsvTable table = read_csv(write("t.csv", "a, \"b\"\n1,2.5\n\n-3e2, +4\r\n"),
                            {.separator = ',', .header = true});
  EXPECT_THAT(table.names, testing::ElementsAre("a", "b"));
  EXPECT_TRUE(table.values.equal(torch::tensor({{1.0, 2.5}, {-300.0, 4.0}}, torch::kFloat64)));
}

TEST_F(Csv, NamesLineAndColumn) {
  auto corrupt = [&](const std::string& text) {
    auto path = write("t.csv", text);
    return error_of(ErrorCode::corruption, [&] { (void)read_csv(path); });
  };
  EXPECT_THAT(corrupt("1,2\n3,x4\n"), HasSubstr("t.csv:2: column 2: 'x4' is not a number"));
  EXPECT_THAT(corrupt("1,2\n\n3\n"), HasSubstr("t.csv:3: 1 columns where the lines before have 2"));
  EXPECT_THAT(corrupt("1,\n"), HasSubstr("column 2: '' is not a number"));
  EXPECT_THAT(corrupt("\n"), HasSubstr("no rows"));
}

TEST(Gzip, MembersFollowEachOther) {
  EXPECT_EQ(train::gunzip_if_needed(gzip("one ") + gzip("two"), "x"), "one two");
  const std::string large(3'000'000, 'k');
  EXPECT_THROW(train::gunzip_if_needed(gzip(large), "x", large.size() - 1), Error);
  EXPECT_EQ(train::gunzip_if_needed(gzip(large), "x"), large);
}

TEST(Digits, AreAllThere) {
  const Dataset train = load_digits(Split::train), test = load_digits(Split::test);
  EXPECT_EQ(train.size(), 1438U);
  EXPECT_EQ(test.size(), 359U);
  EXPECT_EQ(train.inputs.sizes(), (std::vector<int64_t>{1438, 64}));
  EXPECT_EQ(torch::cat({train.inputs, test.inputs}).max().item<float>(), 1.0F);
  // As counted in the origin: 178 zeros, 182 ones, 177 twos, …
  torch::Tensor counts = torch::bincount(torch::cat({train.targets, test.targets}));
  EXPECT_TRUE(counts.equal(
      torch::tensor({178, 182, 177, 183, 181, 182, 181, 179, 174, 180}, torch::kInt64)));
  // The first digit's first row: 0 0 5 13 9 1 0 0, and it is a zero.
  EXPECT_FLOAT_EQ(train.inputs[0][3].item<float>(), 13.0F / 16);
  EXPECT_EQ(train.targets[0].item<int64_t>(), 0);
}

TEST(Datasets, GiveBatches) {
  const Dataset digits = load_digits(Split::test);
  const std::vector<std::size_t> samples{3, 0, 3};
  const Batch batch = digits.batch(samples);
  EXPECT_TRUE(batch.inputs[1].equal(digits.inputs[0]));
  EXPECT_TRUE(batch.targets[2].equal(digits.targets[3]));
  const std::vector<std::size_t> outside{digits.size()};
  error_of(ErrorCode::invalid_argument, [&] { (void)digits.batch(outside); });
  EXPECT_EQ(digits.head(10).size(), 10U);
}

TEST(FashionMnist, LoadsWhatDebianInstalls) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const Dataset test = load_fashion_mnist(Split::test);
  EXPECT_EQ(test.inputs.sizes(), (std::vector<int64_t>{10000, 1, 28, 28}));
  EXPECT_NEAR(test.inputs.mean().item<double>(), 0.0, 0.01);
  EXPECT_NEAR(test.inputs.std().item<double>(), 1.0, 0.01);
  EXPECT_TRUE(torch::bincount(test.targets).equal(torch::full({10}, 1000, torch::kInt64)));
  error_of(ErrorCode::not_found, [&] { (void)load_fashion_mnist(Split::train, "/nowhere"); });
}

}  // namespace
}  // namespace kolo
