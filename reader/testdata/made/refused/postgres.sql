--
-- PostgreSQL database dump
--

COPY public.people (id, name) FROM stdin;
1	Ann
\.
