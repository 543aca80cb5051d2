//! Objects of stores and HTTP servers, and the credentials for them, against servers of this process.

/// The tests of `objects`, each by its name, of the client that `make` makes.
macro_rules! of_every_client {
    () => {
        of_every_client! {
            an_object_is_read_whole_ahead_of_its_reader_and_each_byte_once(make);
            requests_to_a_server_that_is_not_known_yet_go_out_side_by_side(make);
            ranges_of_one_object_are_under_way_side_by_side(make);
            the_largest_object_is_read_at_its_end_and_not_beyond(make);
            a_body_that_stalls_is_asked_for_again(impatient);
            an_empty_object_ends_at_once(make);
            passing_faults_are_not_seen_by_a_reader_or_at_opening(make);
            a_server_that_asks_for_a_second_gets_it(make);
            a_server_may_ask_for_any_pause(make);
            bytes_behind_the_range_are_left(make);
            an_object_of_another_size_is_refused(make);
            a_redirect_stays_with_its_server(make);
            a_replaced_object_is_an_error_to_its_readers_and_new_to_the_next_open(make);
            a_replaced_object_of_another_size_is_told_by_its_tag_where_conditions_are_ignored(make);
            refusals_reach_the_reader_as_what_they_are(make);
        }
    };
    ($($test:ident($make:ident);)*) => {
        $(
            #[test]
            fn $test() {
                objects::$test($make);
            }
        )*
    };
}

mod credentials;
mod http;
#[path = "../http_server/mod.rs"]
mod http_server;
mod keys;
mod odd;
mod s3;
mod scripted;
#[path = "../signed/mod.rs"]
mod signed;
mod tree;
