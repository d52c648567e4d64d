//! float64 functions: the platform's, which are within a unit in the last place
//! or two; what is not there is here.
