//! Parameters of prepared statements, as clients send them, mutated: the target of `fuzz/` that goes from the wire to the engine.
//! `AVOCET_FUZZ_CASES` says how many.

#[path = "../../../fuzz/targets/execute.rs"]
mod execute;
#[path = "../../../fuzz/seeded.rs"]
mod seeded;

#[test]
fn no_parameters_bring_a_session_down() {
    seeded::fuzz("execute", execute::run, &execute::examples(), seeded::cases(1000));
}
