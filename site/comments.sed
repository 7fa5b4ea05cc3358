# The voice of our comments in doxygen's: a paragraph of its own for each of the words that CONTRIBUTING.md names, and
# signs that doxygen would take for HTML or a command.
/^ *\/\/\/($|[^\/])/ {
  s#^( *)/// (Collective|Shape|Units|Blocks|Lifetime|Errors|Cost|Source|Thread safety): #\1///\n\1/// **\2:** #
}
/\/\/\// {
  s#(///<?) >#\1 \&gt;#
  /\/\/\/     /! {
    /`/! {
      s#(///<?.*)\\#\1\\\\#g
      :angle
      s#(///<?[^<]*[^<])<([^ <])#\1\&lt;\2#
      t angle
    }
  }
}
