tutti_test(philox_test LIBRARIES tutti_data)
tutti_test(sample_order_test LIBRARIES tutti_data)
tutti_test(data_set_test LIBRARIES tutti_data)
