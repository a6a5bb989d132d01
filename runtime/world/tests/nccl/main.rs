//! NCCL binding over a fake library, without a GPU or NCCL. The tests are ignored without a `rustc`
//! to compile the library.

// Source of the library, included only for the formatter.
#[cfg(any())]
#[path = "fake/lib.rs"]
mod fake;
mod faults;
mod invalid_use;
mod lifecycle;
mod search;
mod stub;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(question) = std::env::var_os(search::CHILD) {
        return search::child(&question);
    }
    let no_rustc = stub::version_of_rustc().err();
    let no_nccl = search::real().err();
    let trial = |name: &str, missing: &Option<String>, test: fn() -> Result<(), Failed>| {
        let kind = missing.as_deref().unwrap_or_default();
        Trial::test(name, test).with_kind(kind).with_ignored_flag(missing.is_some())
    };
    let stands = |name: &str, test| trial(name, &no_rustc, test);
    let trials = vec![
        trial("a_missing_library_says_what_to_install", &None, search::missing),
        trial("invalid_libraries_are_reported", &None, search::no_library),
        trial("multicast_is_off_where_the_environment_says_so", &None, search::multicast),
        stands("places_are_searched_in_the_documented_order", search::order),
        stands("an_old_library_is_passed_over_or_reported", search::old),
        stands("a_library_without_a_function_is_named_with_it", search::without_a_function),
        stands("buffers_are_reached_into_before_2_24", search::direct),
        trial("the_real_library_loads", &no_nccl, search::real_loads),
        stands("random_exchanges_bring_every_byte", lifecycle::exchanges),
        stands("a_communicator_may_change_its_thread", lifecycle::other_thread),
        stands("blocks_are_bounded_as_asked", lifecycle::max_ctas),
        stands("memory_is_given_back", lifecycle::memory),
        stands("a_lost_rank_ends_in_one_abort", lifecycle::lost_rank),
        stands("a_rank_that_does_not_finish_is_late", lifecycle::no_finish),
        stands("dropped_communicators_are_aborted", lifecycle::dropped),
        stands("unlike_halves_fail_on_both_sides", lifecycle::unlike),
        stands("every_function_may_return_any_code", faults::codes),
        stands("an_abort_that_fails_is_an_error", faults::abort),
        stands("a_communicator_may_come_to_any_code", faults::async_codes),
        stands("a_communicator_beside_an_error_is_given_back", faults::half),
        stands("a_communicator_of_another_rank_or_none_is_an_error", faults::strange),
        stands("texts_may_be_missing", faults::texts),
        stands("endless_operations_are_late", faults::late),
        stands("waiting_ranks_may_give_up", faults::given_up),
        stands("calls_that_cannot_be_are_not_made", invalid_use::calls),
        stands("nothing_is_begun_before_what_was_is_settled", invalid_use::unsettled),
        stands("failed_communicators_are_not_used_again", invalid_use::failed),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(message().into()) }
}
