# See comments.sh.
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
