"""Language models: tokens a second of whole programs, beside other libraries."""
